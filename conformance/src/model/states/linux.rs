//! The states of a Linux device, and the operations to try in each.

use super::{Board, DEVICE, OTHER, OWN, SECOND, ask, closed, ends, map, sized};
use crate::model::linux::{Kernel, Linux};
use crate::model::{D, Handle, Memory, Operation, Remote, Request, T};

/// By version, the newest last.
pub(super) fn boards() -> [Board<Linux>; 2] {
    [
        board("Before Linux 7.2: at most one device per thread", false),
        board("Since Linux 7.2: one local and one remote device per thread", true),
    ]
}

fn board(title: &'static str, local_and_remote: bool) -> Board<Linux> {
    let kernel = Kernel { comparisons: true, bounds_count: true, local_and_remote };
    let enabled = |thread| vec![sized(), ask(thread, DEVICE, Request::Enable(0))];
    let collecting = |thread| vec![sized(), remote(thread, DEVICE, 1)];
    Board {
        title,
        driver: Linux::new(kernel),
        states: vec![
            ("unsized", vec![]),
            ("sized", vec![sized()]),
            ("enabled by this thread", enabled(OWN)),
            ("enabled by another thread", enabled(OTHER)),
            ("remote for this thread", collecting(OWN)),
            ("remote for another thread", collecting(OTHER)),
            ("enabled, closed", closed(enabled(OWN))),
            ("remote, closed", closed(collecting(OWN))),
        ],
        acts: vec![
            ("set size", vec![sized()]),
            ("set size 1", vec![ask(OWN, DEVICE, Request::Size(1))]),
            ("map", map()),
            ("enable", vec![ask(OWN, DEVICE, Request::Enable(0))]),
            ("enable, unknown mode", vec![ask(OWN, DEVICE, Request::Enable(2))]),
            ("disable", vec![ask(OWN, DEVICE, Request::Disable(0))]),
            ("disable, argument 1", vec![ask(OWN, DEVICE, Request::Disable(1))]),
            ("enable remotely", vec![remote(OWN, DEVICE, 1)]),
            ("enable another device", vec![ask(OWN, SECOND, Request::Enable(0))]),
            ("enable another device remotely", vec![remote(OWN, SECOND, 2)]),
            ("enable another with the same handle", vec![remote(T(0), SECOND, 1)]),
            ("other thread disables", vec![ask(OTHER, DEVICE, Request::Disable(0))]),
            ("other thread enables another device", vec![ask(OTHER, SECOND, Request::Enable(0))]),
            ("this thread exits", ends(OWN)),
            ("other thread exits", ends(OTHER)),
            ("last close", closed(vec![])),
        ],
        probes: vec![],
    }
}

fn remote(thread: T, descriptor: D, handle: u16) -> Operation {
    let argument = Remote {
        mode: 0,
        area: 512,
        common: Handle::Zero,
        handles: vec![Handle::Usb(handle)],
        fill: 0,
        memory: Memory::Whole,
    };
    ask(thread, descriptor, Request::RemoteEnable(argument))
}
