//! Words divided into bit fields, from the masks of `kcov-sys`.

use super::svg::{Anchor, Svg};
use kcov_sys::linux::{
    KCOV_CMP_CONST, KCOV_CMP_MASK, KCOV_INSTANCE_MASK, KCOV_SUBSYSTEM_COMMON, KCOV_SUBSYSTEM_MASK,
    KCOV_SUBSYSTEM_USB,
};
use kcov_sys::netbsd::kcov_remote_vhci_id;

/// Some bits of a 64-bit word, with their name and notes.
struct Field<'a> {
    mask: u64,
    width: i32,
    class: &'static str,
    name: &'a str,
    notes: &'a [&'a str],
}

pub(super) fn cmp_type() -> String {
    picture(
        "The type word of a comparison record, bit by bit",
        &[
            Field {
                mask: !(KCOV_CMP_MASK | KCOV_CMP_CONST),
                width: 150,
                class: "none",
                name: "0",
                notes: &[],
            },
            Field {
                mask: KCOV_CMP_MASK,
                width: 110,
                class: "one",
                name: "size",
                notes: &["operands of", "1 << n bytes"],
            },
            Field {
                mask: KCOV_CMP_CONST,
                width: 110,
                class: "two",
                name: "const",
                notes: &["1: the first is", "a constant"],
            },
        ],
    )
}

pub(super) fn handle_linux() -> String {
    let common =
        format!("{}: common", KCOV_SUBSYSTEM_COMMON >> KCOV_SUBSYSTEM_MASK.trailing_zeros());
    let usb = format!("{}: USB", KCOV_SUBSYSTEM_USB >> KCOV_SUBSYSTEM_MASK.trailing_zeros());
    picture(
        "A handle of remote coverage on Linux, bit by bit",
        &[
            Field {
                mask: KCOV_SUBSYSTEM_MASK,
                width: 100,
                class: "one",
                name: "subsystem",
                notes: &[&common, &usb],
            },
            Field {
                mask: !(KCOV_SUBSYSTEM_MASK | KCOV_INSTANCE_MASK),
                width: 110,
                class: "none",
                name: "0",
                notes: &["else EINVAL"],
            },
            Field {
                mask: KCOV_INSTANCE_MASK,
                width: 160,
                class: "two",
                name: "instance",
                notes: &["common: your choice", "USB: bus number"],
            },
        ],
    )
}

pub(super) fn vhci_id_netbsd() -> String {
    let port = kcov_remote_vhci_id(0, u64::MAX);
    picture(
        "The id of a port of vhci(4) on NetBSD, bit by bit",
        &[
            Field { mask: !port, width: 185, class: "one", name: "bus", notes: &[] },
            Field {
                mask: port,
                width: 185,
                class: "two",
                name: "port",
                notes: &["0: the root hub"],
            },
        ],
    )
}

fn picture(title: &str, fields: &[Field<'_>]) -> String {
    assert_eq!(fields.iter().fold(0, |all, f| all ^ f.mask), u64::MAX, "each bit once: {title}");
    let mut svg = Svg::new(390, 106, title);
    let mut x = 10;
    for field in fields {
        let (high, low) = (63 - field.mask.leading_zeros(), field.mask.trailing_zeros());
        svg.rect(&format!("box {}", field.class), x, 24, field.width, 34);
        let middle = x + field.width / 2;
        svg.text(middle, 46, Anchor::Middle, field.name);
        if high == low {
            svg.note(middle, 16, Anchor::Middle, &low.to_string());
        } else {
            svg.note(x + 2, 16, Anchor::Start, &high.to_string());
            svg.note(x + field.width - 2, 16, Anchor::End, &low.to_string());
        }
        for (line, note) in (0..).zip(field.notes) {
            svg.note(middle, 76 + 16 * line, Anchor::Middle, note);
        }
        x += field.width;
    }
    svg.finish()
}
