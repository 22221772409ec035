//! Buffers and arguments, word by word.

use super::svg::{Anchor, Svg};
use kcov_sys::linux::{KCOV_WORDS_PER_CMP, kcov_remote_arg};
use kcov_sys::netbsd::{self, kcov_ioc_remote_attach};
use std::mem::{offset_of, size_of};

const ROW: i32 = 28;

/// A row of the column.
struct Row {
    /// The offset in bytes, if known.
    offset: String,
    class: &'static str,
    text: String,
    note: &'static str,
}

impl Row {
    fn new(
        offset: impl ToString,
        class: &'static str,
        text: impl ToString,
        note: &'static str,
    ) -> Row {
        Row { offset: offset.to_string(), class, text: text.to_string(), note }
    }

    fn gap() -> Row {
        Row::new("", "gap", "⋮", "")
    }
}

fn column(title: &str, unit: &str, rows: &[Row]) -> String {
    let mut svg = Svg::new(390, 34 + ROW * rows.len() as i32, title);
    svg.note(76, 16, Anchor::End, "byte");
    svg.note(84, 16, Anchor::Start, unit);
    for (at, row) in (0..).zip(rows) {
        let y = 24 + ROW * at;
        if row.class != "gap" {
            svg.rect(&format!("box {}", row.class), 84, y, 132, ROW);
        }
        svg.note(76, y + 19, Anchor::End, &row.offset);
        svg.text(150, y + 19, Anchor::Middle, &row.text);
        svg.note(224, y + 19, Anchor::Start, row.note);
    }
    svg.finish()
}

fn pc(title: &str, unit: &str, bytes: usize) -> String {
    column(
        title,
        unit,
        &[
            Row::new(0, "one", "count = n", "store 0 to reset"),
            Row::new(bytes, "two", "PC of record 0", "the first"),
            Row::new(2 * bytes, "two", "PC of record 1", ""),
            Row::gap(),
            Row::new(format!("n·{bytes}"), "two", "PC of record n-1", "the last"),
            Row::new("", "none", "not written", ""),
            Row::gap(),
            Row::new(format!("(size-1)·{bytes}"), "none", "", "used if n = size-1"),
        ],
    )
}

pub(super) fn pc_linux() -> String {
    pc("PC mode of a 64-bit Linux kernel, word by word", "unsigned long", 8)
}

pub(super) fn pc_linux_32() -> String {
    pc("PC mode of a 32-bit Linux kernel, word by word", "unsigned long", 4)
}

pub(super) fn pc_netbsd() -> String {
    pc("PC mode of NetBSD, entry by entry", "kcov_int_t", netbsd::KCOV_ENTRY_SIZE)
}

fn cmp(title: &str, unit: &str, last: &str, words: usize) -> String {
    let offset = |record: usize, word: usize| 8 * (1 + words * record + word);
    column(
        title,
        unit,
        &[
            Row::new(0, "one", "count = n", "records, not words"),
            Row::new(offset(0, 0), "two", "type", "record 0: size, const"),
            Row::new(offset(0, 1), "two", "arg1", "the constant, if const"),
            Row::new(offset(0, 2), "two", "arg2", ""),
            Row::new(offset(0, 3), "two", last, "return address"),
            Row::new(offset(1, 0), "three", "type", "record 1"),
            Row::new(offset(1, 1), "three", "arg1", ""),
            Row::new(offset(1, 2), "three", "arg2", ""),
            Row::new(offset(1, 3), "three", last, ""),
            Row::gap(),
            Row::new("", "none", "not written", "up to 3 words"),
        ],
    )
}

pub(super) fn cmp_linux() -> String {
    cmp("Comparison mode of Linux, word by word", "u64", "ip", KCOV_WORDS_PER_CMP)
}

pub(super) fn cmp_netbsd() -> String {
    cmp("Comparison mode of NetBSD, entry by entry", "kcov_int_t", "pc", netbsd::KCOV_WORDS_PER_CMP)
}

pub(super) fn remote_arg_linux() -> String {
    type Arg = kcov_remote_arg<2>;
    let handles = offset_of!(Arg, handles);
    column(
        "struct kcov_remote_arg of Linux, field by field",
        "struct kcov_remote_arg",
        &[
            Row::new(offset_of!(Arg, trace_mode), "one", "trace_mode", "u32"),
            Row::new(offset_of!(Arg, area_size), "one", "area_size", "u32, in words"),
            Row::new(offset_of!(Arg, num_handles), "one", "num_handles", "u32, up to 256"),
            Row::new(offset_of!(Arg, _pad), "none", "(padding)", "4 bytes"),
            Row::new(offset_of!(Arg, common_handle), "two", "common_handle", "u64, 0 for none"),
            Row::new(handles, "three", "handles[0]", "u64"),
            Row::new(handles + size_of::<u64>(), "three", "handles[1]", "u64"),
            Row::gap(),
        ],
    )
}

pub(super) fn remote_attach_netbsd() -> String {
    type Arg = kcov_ioc_remote_attach;
    column(
        "struct kcov_ioc_remote_attach of NetBSD, field by field",
        "struct kcov_ioc_remote_attach",
        &[
            Row::new(offset_of!(Arg, subsystem), "one", "subsystem", "uint64_t, 0 for vhci"),
            Row::new(offset_of!(Arg, id), "two", "id", "uint64_t, bus and port"),
        ],
    )
}

/// Two processes, their mappings, and the writing thread.
fn mapping(title: &str, whole: bool) -> String {
    let mut svg = Svg::new(390, 262, title);
    svg.note(60, 16, Anchor::Middle, "your process");
    svg.note(195, 16, Anchor::Middle, "kernel");
    svg.note(330, 16, Anchor::Middle, "another process");
    let pages = ["page 0", "page 1", "page 2"];
    for (at, page) in (0..).zip(pages) {
        let y = 26 + 44 * at;
        let class = if at == 0 { "one" } else { "two" };
        svg.rect(&format!("box {class}"), 150, y, 90, 44);
        svg.text(195, y + 27, Anchor::Middle, page);
        svg.rect(&format!("box {class}"), 15, y, 90, 44);
        svg.line(&[(105, y + 22), (150, y + 22)]);
        // NetBSD allows a partial mapping.
        if whole || at > 0 {
            svg.rect(&format!("box {class}"), 285, y, 90, 44);
            svg.line(&[(240, y + 22), (285, y + 22)]);
        }
    }
    svg.note(60, 53, Anchor::Middle, "count, …");
    svg.arrow(&[(195, 218), (195, 162)]);
    svg.text(195, 234, Anchor::Middle, "the traced thread,");
    svg.text(195, 252, Anchor::Middle, "inside the kernel");
    if whole {
        svg.note(330, 178, Anchor::Middle, "length: the size");
        svg.note(330, 194, Anchor::Middle, "offset: 0");
    } else {
        svg.note(330, 178, Anchor::Middle, "any pages;");
        svg.note(330, 194, Anchor::Middle, "here from page 1");
    }
    svg.note(60, 178, Anchor::Middle, "MAP_SHARED");
    svg.finish()
}

pub(super) fn mapping_linux() -> String {
    mapping("The buffer of a Linux device and its mappings", true)
}

pub(super) fn mapping_netbsd() -> String {
    mapping("The buffer of a NetBSD device and its mappings", false)
}
