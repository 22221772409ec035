//! The states of a NetBSD device, and the operations to try in each.

use super::{Board, DEVICE, OTHER, OWN, SECOND, ask, closed, ends, map, sized};
use crate::model::Request;
use crate::model::netbsd::{Kernel, NetBsd};

/// By version, the newest last.
pub(super) fn boards() -> [Board<NetBsd>; 2] {
    [board("NetBSD 9", false), board("NetBSD 10", true)]
}

fn board(title: &'static str, attaches: bool) -> Board<NetBsd> {
    let kernel = Kernel { attaches, ports: u64::from(attaches) };
    let enable = || ask(OWN, DEVICE, Request::Enable(1));
    let enabled = |thread| vec![sized(), ask(thread, DEVICE, Request::Enable(1))];
    let mut states = vec![
        ("unsized", vec![]),
        ("sized", vec![sized()]),
        ("enabled by this thread", enabled(OWN)),
        ("enabled by another thread", enabled(OTHER)),
        ("enabled by a thread that exited", [enabled(OTHER), ends(OTHER)].concat()),
        ("enabled, closed", closed(enabled(OWN))),
    ];
    let mut acts = vec![
        ("set size", vec![sized()]),
        ("set size 1", vec![ask(OWN, DEVICE, Request::Size(1))]),
        ("map", map()),
        ("enable", vec![enable()]),
        ("enable, unknown mode", vec![ask(OWN, DEVICE, Request::Enable(3))]),
        ("disable", vec![ask(OWN, DEVICE, Request::Disable(0))]),
        ("enable another device", vec![ask(OWN, SECOND, Request::Enable(1))]),
        ("other thread disables", vec![ask(OTHER, DEVICE, Request::Disable(0))]),
        ("other thread enables another device", vec![ask(OTHER, SECOND, Request::Enable(1))]),
        ("this thread exits", ends(OWN)),
        ("other thread exits", ends(OTHER)),
        ("last close", closed(vec![])),
    ];
    let mut probes = Vec::new();
    if attaches {
        let attach = |descriptor| ask(OWN, descriptor, Request::Attach(0, 0));
        let attached = || attach(DEVICE);
        let detach = |descriptor| ask(OWN, descriptor, Request::Detach);
        states.extend([
            ("attached, unsized", vec![attached()]),
            ("attached, sized", vec![sized(), attached()]),
            ("remote, unsized", vec![attached(), enable()]),
            ("remote, sized", vec![sized(), attached(), enable()]),
        ]);
        acts.extend([
            ("attach", vec![attached()]),
            ("detach", vec![detach(DEVICE)]),
            ("another device attaches and detaches", vec![attach(SECOND), detach(SECOND)]),
        ]);
        probes.push(vec![detach(DEVICE), enable()]);
    }
    Board { title, driver: NetBsd::new(kernel), states, acts, probes }
}
