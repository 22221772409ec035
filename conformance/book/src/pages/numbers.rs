//! Ioctls, modes and limits, from `kcov-sys`.

use super::{MARK, WRITING, reference};
use kcov_sys::ioc::Encoding;
use kcov_sys::{linux, netbsd};
use std::fmt::Write as _;

pub(super) fn linux() -> String {
    let generic = [8, 4].map(|long| linux::Requests::new(Encoding::LINUX_GENERIC, long));
    let other = [8, 4].map(|long| linux::Requests::new(Encoding::LINUX_MIPS_POWERPC, long));
    type Number = fn(&linux::Requests) -> u32;
    let requests: [(&str, &str, Number); 4] = [
        ("KCOV_INIT_TRACE", "size in words, by value", |r| r.init_trace),
        ("KCOV_ENABLE", "mode, by value", |r| r.enable),
        ("KCOV_DISABLE", "0, by value", |r| r.disable),
        ("KCOV_REMOTE_ENABLE", "pointer to `struct kcov_remote_arg`", |r| r.remote_enable),
    ];
    let mut page = String::from(MARK);
    page.push_str("| ioctl | Argument | Number | Number on MIPS, PowerPC |\n|---|---|---|---|\n");
    for (name, argument, number) in requests {
        let [one, two] = [&generic, &other].map(|kernels| of_both(kernels.each_ref().map(number)));
        let name = reference::request(name);
        writeln!(page, "| {name} | {argument} | {one} | {two} |").expect(WRITING);
    }
    page.push_str("\n| Constant | Value | Meaning |\n|---|---|---|\n");
    for (name, value, meaning) in [
        ("KCOV_TRACE_PC", u64::from(linux::KCOV_TRACE_PC), "mode: program counters"),
        ("KCOV_TRACE_CMP", linux::KCOV_TRACE_CMP.into(), "mode: comparison operands"),
        ("KCOV_CMP_CONST", linux::KCOV_CMP_CONST, "bit of a comparison's type"),
        ("KCOV_CMP_MASK", linux::KCOV_CMP_MASK, "bits of a comparison's type"),
        ("KCOV_REMOTE_MAX_HANDLES", linux::KCOV_REMOTE_MAX_HANDLES.into(), "handles in the array"),
        ("KCOV_SUBSYSTEM_COMMON", linux::KCOV_SUBSYSTEM_COMMON, "handle of local work"),
        ("KCOV_SUBSYSTEM_USB", linux::KCOV_SUBSYSTEM_USB, "handle of a USB bus"),
        ("KCOV_SUBSYSTEM_MASK", linux::KCOV_SUBSYSTEM_MASK, "bits of a handle"),
        ("KCOV_INSTANCE_MASK", linux::KCOV_INSTANCE_MASK, "bits of a handle"),
    ] {
        writeln!(page, "| `{name}` | `{value:#x}` | {meaning} |").expect(WRITING);
    }
    writeln!(
        page,
        "\nMinimum size: {} words. Maximum size: {} words of 8 bytes, or {} words of 4 bytes.",
        linux::KCOV_INIT_TRACE_MIN,
        linux::kcov_init_trace_max(8),
        linux::kcov_init_trace_max(4),
    )
    .expect(WRITING);
    page
}

/// The numbers for 64-bit and 32-bit kernels.
fn of_both([wide, narrow]: [u32; 2]) -> String {
    if wide == narrow {
        format!("`{wide:#x}`")
    } else {
        format!("`{wide:#x}`; 32-bit kernels `{narrow:#x}`")
    }
}

pub(super) fn netbsd() -> String {
    let mut page = String::from(MARK);
    page.push_str("| ioctl | Argument | Number | Since NetBSD |\n|---|---|---|---|\n");
    for (name, argument, number, since) in [
        (
            "KCOV_IOC_SETBUFSIZE",
            "pointer to a `uint64_t`, the size in entries",
            netbsd::KCOV_IOC_SETBUFSIZE,
            "9",
        ),
        ("KCOV_IOC_ENABLE", "pointer to an `int`, the mode", netbsd::KCOV_IOC_ENABLE, "9"),
        ("KCOV_IOC_DISABLE", "none", netbsd::KCOV_IOC_DISABLE, "9"),
        (
            "KCOV_IOC_REMOTE_ATTACH",
            "pointer to `struct kcov_ioc_remote_attach`",
            netbsd::KCOV_IOC_REMOTE_ATTACH,
            "10",
        ),
        ("KCOV_IOC_REMOTE_DETACH", "none", netbsd::KCOV_IOC_REMOTE_DETACH, "10"),
    ] {
        let name = reference::request(name);
        writeln!(page, "| {name} | {argument} | `{number:#x}` | {since} |").expect(WRITING);
    }
    page.push_str("\n| Constant | Value | Meaning |\n|---|---|---|\n");
    for (name, value, meaning) in [
        ("KCOV_MODE_NONE", i64::from(netbsd::KCOV_MODE_NONE), "mode: record nothing"),
        ("KCOV_MODE_TRACE_PC", netbsd::KCOV_MODE_TRACE_PC.into(), "mode: program counters"),
        ("KCOV_MODE_TRACE_CMP", netbsd::KCOV_MODE_TRACE_CMP.into(), "mode: comparison operands"),
        ("KCOV_ENTRY_SIZE", netbsd::KCOV_ENTRY_SIZE as i64, "bytes of an entry"),
        ("KCOV_REMOTE_VHCI", netbsd::KCOV_REMOTE_VHCI as i64, "subsystem of vhci(4)"),
    ] {
        writeln!(page, "| `{name}` | {value} | {meaning} |").expect(WRITING);
    }
    writeln!(
        page,
        "\nMinimum size: {} entries. Maximum size: {} entries.",
        netbsd::KCOV_BUF_MIN_ENTRIES,
        netbsd::KCOV_BUF_MAX_ENTRIES,
    )
    .expect(WRITING);
    page
}
