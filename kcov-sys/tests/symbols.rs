//! Every public symbol by name. Removing or renaming one fails to compile here; adding one without
//! listing it fails the test.

macro_rules! symbols {
    ($module:ident: $($name:ident),* $(,)?) => {
        symbols! { $module($module): $($name),* }
    };
    ($module:ident($($path:ident)::+): $($name:ident),* $(,)?) => {
        mod $module {
            #[allow(unused_imports, reason = "importing is the test")]
            use kcov_sys::$($path)::+::{$($name),*};
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];
        }
    };
}

symbols! { ioc: Encoding }

symbols! { linux:
    proposed,
    kcov_remote_arg,
    KCOV_REMOTE_MAX_HANDLES,
    KCOV_INIT_TRACE,
    KCOV_ENABLE,
    KCOV_DISABLE,
    KCOV_REMOTE_ENABLE,
    KCOV_TRACE_PC,
    KCOV_TRACE_CMP,
    KCOV_CMP_CONST,
    kcov_cmp_size,
    KCOV_CMP_MASK,
    KCOV_SUBSYSTEM_COMMON,
    KCOV_SUBSYSTEM_USB,
    KCOV_SUBSYSTEM_MASK,
    KCOV_INSTANCE_MASK,
    kcov_remote_handle,
    KCOV_PATH,
    KCOV_WORDS_PER_CMP,
    KCOV_INIT_TRACE_MIN,
    kcov_init_trace_max,
    ENOTSUPP,
    KCOV_INIT_TRACE32,
    KCOV_INIT_TRACE64,
    Requests,
}

symbols! { linux_proposed(linux::proposed):
    KCOV_TRACE_PC_EXT,
    KCOV_RECORD_IP_MASK,
    KCOV_RECORDFLAG_TYPEMASK,
    KCOV_RECORDFLAG_TYPE_NORMAL,
    KCOV_RECORDFLAG_TYPE_ENTRY,
    KCOV_RECORDFLAG_TYPE_EXIT,
    KCOV_TRACE_UNIQ_PC,
    KCOV_TRACE_UNIQ_EDGE,
    KCOV_TRACE_UNIQ_CMP,
    kcov_uniq_edge,
    KCOV_UNIQUE_ENABLE,
    KCOV_RESET_TRACE,
    Requests,
}

symbols! { netbsd:
    KCOV_IOC_SETBUFSIZE,
    KCOV_IOC_ENABLE,
    KCOV_IOC_DISABLE,
    kcov_ioc_remote_attach,
    KCOV_IOC_REMOTE_ATTACH,
    KCOV_IOC_REMOTE_DETACH,
    KCOV_REMOTE_VHCI,
    kcov_remote_vhci_id,
    KCOV_MODE_NONE,
    KCOV_MODE_TRACE_PC,
    KCOV_MODE_TRACE_CMP,
    kcov_int_t,
    KCOV_ENTRY_SIZE,
    KCOV_PATH,
    KCOV_MAJOR,
    KCOV_WORDS_PER_CMP,
    KCOV_BUF_MIN_ENTRIES,
    KCOV_BUF_MAX_ENTRIES,
    KCOV_CMP_CONST,
    kcov_cmp_size,
}

/// Names of the public items at the top level of a source file, in order.
fn public_items(source: &str) -> Vec<&str> {
    source
        .lines()
        .filter_map(|line| line.strip_prefix("pub "))
        .map(|item| {
            let item = item.strip_prefix("const fn ").unwrap_or_else(|| {
                item.split_once(' ').expect("a public item has a kind and a name").1
            });
            item.split(|c: char| !c.is_alphanumeric() && c != '_').next().expect("never empty")
        })
        .collect()
}

#[test]
fn ioc_symbols_are_listed() {
    assert_eq!(public_items(include_str!("../src/ioc.rs")), ioc::NAMES);
}

#[test]
fn linux_symbols_are_listed() {
    assert_eq!(public_items(include_str!("../src/linux.rs")), linux::NAMES);
}

#[test]
fn proposed_symbols_are_listed() {
    let source = include_str!("../src/linux/proposed.rs");
    assert_eq!(public_items(source), linux_proposed::NAMES);
}

#[test]
fn netbsd_symbols_are_listed() {
    assert_eq!(public_items(include_str!("../src/netbsd.rs")), netbsd::NAMES);
}
