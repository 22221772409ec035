//! The generated part of `kcov/capi/kcov.h` is what `kcov-sys` and the error tables of `kcov` make
//! now. `HEADER_UPDATE=1` writes it.

use kcov::{ERRORS, ErrorKind, Operation, Row};
use kcov_sys::ioc::Encoding;
use kcov_sys::{errno, linux, netbsd};
use std::fmt::Write as _;
use std::fs;
use std::mem::offset_of;
use std::path::Path;

const BEGIN: &str = "/* BEGIN GENERATED */\n";
const END: &str = "/* END GENERATED */\n";

/// The operations of the header.
const OPERATIONS: &[Operation] = &[
    Operation::Open,
    Operation::SetSize,
    Operation::Map,
    Operation::Enable,
    Operation::EnableRemote,
    Operation::Disable,
    Operation::DisableRemote,
    Operation::Attach,
];

/// Kinds that the header finds out without an errno of their own.
const FOUND: &[ErrorKind] = &[
    ErrorKind::DebugfsNotMounted,
    ErrorKind::NotKcov,
    ErrorKind::SizeOutOfLimits,
    ErrorKind::UnknownSubsystem,
    ErrorKind::TooManyHandles,
    ErrorKind::Other,
];

/// The preprocessor's test for a system, the rows of its errors, and the names of its errnos.
type Table = (&'static str, &'static [Row], &'static [(&'static str, i32)]);

const TABLES: [Table; 2] = [
    ("defined(__linux__)", ERRORS[0][0], errno::linux::ALL),
    ("defined(__NetBSD__)", ERRORS[1][0], errno::netbsd::ALL),
];

fn rows(table: &Table) -> impl Iterator<Item = &'static Row> {
    // The header maps at no particular address.
    table
        .1
        .iter()
        .filter(|row| OPERATIONS.contains(&row.operation) && row.kind != ErrorKind::AddressInUse)
}

/// The name of an enumerator: `NotBuiltIn` becomes `NOT_BUILT_IN`.
fn upper(name: &impl std::fmt::Debug) -> String {
    let mut text = String::new();
    for letter in format!("{name:?}").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

/// Advice in the header's words.
fn help(text: &str) -> String {
    text.replace("within `BufferSize::limits`", "of at most kcov_max_words() words")
        .replace('`', "'")
}

fn requests(encoding: Encoding) -> String {
    let [narrow, wide] = [4, 8].map(|long| linux::Requests::new(encoding, long));
    assert_eq!(narrow.remote_enable, wide.remote_enable);
    format!(
        "#define KCOV_LINUX_INIT_TRACE32 {:#x}u\n#define KCOV_LINUX_INIT_TRACE64 {:#x}u\n\
         #define KCOV_LINUX_ENABLE {:#x}u\n#define KCOV_LINUX_DISABLE {:#x}u\n\
         #define KCOV_LINUX_REMOTE_ENABLE {:#x}u\n",
        narrow.init_trace, wide.init_trace, wide.enable, wide.disable, wide.remote_enable
    )
}

fn numbers() -> String {
    let limits = [4, 8].map(|long| linux::kcov_init_trace_max(long) * long);
    let bytes = limits[0].max(limits[1]) | 7;
    assert!([4, 8].iter().all(|long| bytes / long == linux::kcov_init_trace_max(*long)));
    format!(
        "/* Linux. The encoding of requests depends on the architecture. */\n\
         #if defined(__mips__) || defined(__powerpc__) || defined(__powerpc64__)\n{}#else\n{}\
         #endif\n\
         #define KCOV_LINUX_PATH \"{}\"\n#define KCOV_LINUX_DEBUGFS 0x64626720u\n\
         #define KCOV_LINUX_TRACE_PC {}\n#define KCOV_LINUX_TRACE_CMP {}\n\
         #define KCOV_LINUX_MAX_BYTES {bytes:#x}u\n#define KCOV_LINUX_MAX_HANDLES {}\n\
         #define KCOV_LINUX_SUBSYSTEM_USB {:#018x}ull\n\
         #define KCOV_LINUX_INSTANCE_MASK {:#x}ull\n\n\
         /* NetBSD. */\n\
         #define KCOV_NETBSD_SETBUFSIZE {:#x}u\n#define KCOV_NETBSD_ENABLE {:#x}u\n\
         #define KCOV_NETBSD_DISABLE {:#x}u\n#define KCOV_NETBSD_REMOTE_ATTACH {:#x}u\n\
         #define KCOV_NETBSD_REMOTE_DETACH {:#x}u\n\
         #define KCOV_NETBSD_PATH \"{}\"\n#define KCOV_NETBSD_MAJOR {}\n\
         #define KCOV_NETBSD_TRACE_PC {}\n#define KCOV_NETBSD_TRACE_CMP {}\n\
         #define KCOV_NETBSD_MAX_WORDS {:#x}\n#define KCOV_NETBSD_VHCI {}\n\n\
         /* Both: words of a comparison. */\n#define KCOV_CMP_WORDS {}\n\n",
        requests(Encoding::LINUX_MIPS_POWERPC),
        requests(Encoding::LINUX_GENERIC),
        linux::KCOV_PATH,
        linux::KCOV_TRACE_PC,
        linux::KCOV_TRACE_CMP,
        linux::KCOV_REMOTE_MAX_HANDLES,
        linux::KCOV_SUBSYSTEM_USB,
        linux::KCOV_INSTANCE_MASK,
        netbsd::KCOV_IOC_SETBUFSIZE,
        netbsd::KCOV_IOC_ENABLE,
        netbsd::KCOV_IOC_DISABLE,
        netbsd::KCOV_IOC_REMOTE_ATTACH,
        netbsd::KCOV_IOC_REMOTE_DETACH,
        netbsd::KCOV_PATH,
        netbsd::KCOV_MAJOR,
        netbsd::KCOV_MODE_TRACE_PC,
        netbsd::KCOV_MODE_TRACE_CMP,
        netbsd::KCOV_BUF_MAX_ENTRIES,
        netbsd::KCOV_REMOTE_VHCI,
        linux::KCOV_WORDS_PER_CMP,
    )
}

fn kinds() -> Vec<ErrorKind> {
    let is_used = |kind: &ErrorKind| {
        FOUND.contains(kind) || TABLES.iter().flat_map(rows).any(|row| row.kind == *kind)
    };
    ErrorKind::DOCUMENTED.iter().map(|(kind, _)| *kind).filter(is_used).collect()
}

/// A C string, or `NULL`.
fn quoted(text: Option<&str>) -> String {
    text.map_or("NULL".to_owned(), |text| format!("\"{}\"", help(text)))
}

fn errors() -> String {
    let kinds = kinds();
    let mut text = "/* What was wrong. */\nenum kcov_kind {\n\tKCOV_OK".to_owned();
    for kind in &kinds {
        write!(text, ",\n\tKCOV_{}", upper(kind)).unwrap();
    }
    text += "\n};\n\n/* What failed. */\nenum kcov_operation {";
    for (index, operation) in OPERATIONS.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(text, "{comma}\n\tKCOV_OP_{}", upper(operation)).unwrap();
    }
    text += "\n};\n\n/* The rest of \"cannot ...\". */\n\
             static inline const char *kcov_operation_text(enum kcov_operation operation)\n{\n\
             \tstatic const char *const texts[] = {\n";
    for operation in OPERATIONS {
        writeln!(text, "\t\t{},", quoted(Some(operation.text()))).unwrap();
    }
    text += "\t};\n\n\treturn texts[operation];\n}\n\n\
             /* A kind in words, and what to do or NULL. */\n\
             static inline const char *const *kcov_kind_texts(enum kcov_kind kind)\n{\n\
             \tstatic const char *const texts[][2] = {\n\t\t{\"no error\", NULL},\n";
    for kind in &kinds {
        let (what, help) = (quoted(Some(kind.text())), quoted(kind.help()));
        writeln!(text, "\t\t{{{what}, {help}}},").unwrap();
    }
    text += "\t};\n\n\treturn texts[kind];\n}\n\n\
             /* An errno of an operation: its kind, and what to do if the kind does not tell. */\n\
             struct kcov_meaning {\n\tenum kcov_operation operation;\n\tint error;\n\
             \tenum kcov_kind kind;\n\tconst char *help;\n};\n\n\
             /* The meaning of this errno, or NULL. */\n\
             static inline const struct kcov_meaning *kcov_meaning_of(enum kcov_operation operation,\n\
             \t\t\t\t\t\t\t\t int error)\n{\n\
             \tstatic const struct kcov_meaning all[] = {\n";
    for (index, table) in TABLES.iter().enumerate() {
        writeln!(text, "#{} {}", if index == 0 { "if" } else { "elif" }, table.0).unwrap();
        for row in rows(table) {
            let found = table.2.iter().find(|errno| errno.1 == row.errno).expect("a known errno");
            // libc does not know the kernel's own number.
            let own = found.1 == linux::ENOTSUPP;
            let name = if own { found.1.to_string() } else { found.0.to_owned() };
            let (operation, kind) = (upper(&row.operation), upper(&row.kind));
            let help = quoted(row.help().filter(|help| Some(*help) != row.kind.help()));
            writeln!(text, "\t\t{{KCOV_OP_{operation}, {name}, KCOV_{kind}, {help}}},").unwrap();
        }
    }
    text + "#endif\n\t};\n\tsize_t i;\n\n\tfor (i = 0; i < sizeof(all) / sizeof(*all); i++)\n\
            \t\tif (all[i].operation == operation && all[i].error == error)\n\
            \t\t\treturn &all[i];\n\treturn NULL;\n}\n"
}

/// Compares what is between the marks with what belongs there.
#[test]
fn the_header_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kcov/capi/kcov.h");
    let text = fs::read_to_string(&file).expect("the header");
    let (before, rest) = text.split_once(BEGIN).expect(BEGIN);
    let (current, after) = rest.split_once(END).expect(END);
    let wanted = numbers() + &errors();
    if std::env::var_os("HEADER_UPDATE").is_some() {
        fs::write(&file, [before, BEGIN, &wanted, END, after].concat()).expect("the header");
    } else {
        let again = "run `HEADER_UPDATE=1 cargo test -p kcov-book --test header`";
        assert!(current == wanted, "kcov/capi/kcov.h is stale; {again}");
    }
}

/// The header's structures have the layouts of `kcov-sys`: its fields in order, without padding.
#[test]
fn structures_are_in_order() {
    type Remote = linux::kcov_remote_arg<256>;
    let remote = [
        offset_of!(Remote, trace_mode),
        offset_of!(Remote, area_size),
        offset_of!(Remote, num_handles),
        offset_of!(Remote, _pad),
        offset_of!(Remote, common_handle),
        offset_of!(Remote, handles),
    ];
    assert_eq!(remote, [0, 4, 8, 12, 16, 24]);
    type Attach = netbsd::kcov_ioc_remote_attach;
    assert_eq!([offset_of!(Attach, subsystem), offset_of!(Attach, id)], [0, 8]);
}
