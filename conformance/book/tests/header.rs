//! The generated part of `kcov/capi/kcov.h` is what `kcov-sys` and the error tables of `kcov` make.
//! `HEADER_UPDATE=1` writes it.

use kcov_sys::{linux, netbsd};
use std::fs;
use std::mem::offset_of;
use std::path::Path;

const BEGIN: &str = "/* BEGIN GENERATED */\n";
const END: &str = "/* END GENERATED */\n";

/// Compares what is between the marks with what belongs there.
#[test]
fn the_header_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kcov/capi/kcov.h");
    let text = fs::read_to_string(&file).expect("the header");
    let (before, rest) = text.split_once(BEGIN).expect(BEGIN);
    let (current, after) = rest.split_once(END).expect(END);
    let wanted = kcov_book::pages::header();
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
