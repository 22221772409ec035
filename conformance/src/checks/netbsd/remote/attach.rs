//! `KCOV_IOC_REMOTE_ATTACH` and `KCOV_IOC_REMOTE_DETACH`.

use super::{PORT, attached, source_map};
use crate::check::{Context, checks};
use crate::raw::{Device, KCOV_TRACE_PC, Source, call};
use crate::system::{COVER_SIZE, mapped, open, sized};
use kcov_sys::netbsd::KCOV_IOC_REMOTE_ATTACH;

checks! {
    unknown_source_is_refused needs(NetBsd10),
    unreadable_argument_is_refused needs(NetBsd10),
    while_enabled_is_refused needs(NetBsd10),
    enabled_comes_before_source needs(NetBsd10),
    detach_when_not_attached_is_refused needs(NetBsd10),
    detach_while_enabled_is_refused needs(NetBsd10),
    every_port_is_a_source needs(Vhci),
    again needs(Vhci),
    while_the_source_is_enabled needs(Vhci),
    size_is_ignored needs(Vhci),
    own_buffer_comes_back needs(Vhci),
    own_buffer_can_be_sized_after_detach needs(Vhci),
}

/// A source that no kernel has.
const NONE: Source = Source { subsystem: u64::MAX, id: u64::MAX };

fn unknown_source_is_refused(cx: &Context) {
    let device = open(cx);
    cx.refused_by(&device, |device| device.attach(NONE));
    cx.refused_by(&device, |device| device.attach(Source { subsystem: 0, id: u64::MAX }));
    cx.refused_by(&device, |device| device.attach(Source::vhci(0, 99)));
    cx.refused_by(&device, |device| device.attach(Source { subsystem: 1, id: 1 }));
    device.init_trace(COVER_SIZE).expect("it is not attached");
    assert!(device.map(COVER_SIZE).is_ok());
}

fn unreadable_argument_is_refused(cx: &Context) {
    cx.refused_by(&open(cx), |device| device.request(KCOV_IOC_REMOTE_ATTACH, 0));
}

fn while_enabled_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&device, |device| device.attach(PORT));
    device.disable().expect("it is still enabled");
}

fn enabled_comes_before_source(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&device, |device| device.attach(NONE));
}

fn detach_when_not_attached_is_refused(cx: &Context) {
    cx.refused_by(&open(cx), Device::detach);
    cx.refused_by(&sized(cx, COVER_SIZE), Device::detach);
}

fn detach_while_enabled_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&device, Device::detach);
}

fn every_port_is_a_source(cx: &Context) {
    for port in 0..2 {
        assert_eq!(open(cx).attach(Source::vhci(0, port)), Ok(()), "port {port}");
    }
}

fn again(cx: &Context) {
    let device = attached(cx);
    assert_eq!(device.attach(PORT), Ok(()), "the same source");
    assert_eq!(device.attach(Source::vhci(0, 0)), Ok(()), "another one");
    assert_eq!(device.detach(), Ok(()));
    assert!(device.detach().is_err(), "it was attached once");
    assert_eq!(device.attach(PORT), Ok(()), "after it was detached");
}

fn while_the_source_is_enabled(cx: &Context) {
    let device = attached(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert_eq!(device.attach(PORT), Ok(()));
    assert_eq!(open(cx).attach(PORT), Ok(()));
}

fn size_is_ignored(cx: &Context) {
    let device = attached(cx);
    for entries in [0, 1, 512, u64::MAX] {
        assert_eq!(device.init_trace(entries), Ok(()), "{entries} entries");
    }
    device.detach().expect("detached");
    assert!(device.map(1).is_err(), "no buffer has come of it");
}

fn own_buffer_comes_back(cx: &Context) {
    let (device, map) = mapped(cx);
    map.store(8, 5);
    device.attach(PORT).expect("attached");
    assert_ne!(source_map(&device).load(8), 5);
    device.detach().expect("detached");
    assert_eq!(device.map(COVER_SIZE).expect("its own buffer").load(8), 5);
    device.enable(KCOV_TRACE_PC).expect("locally");
    map.reset();
    call();
    assert!(map.count() > 0);
}

fn own_buffer_can_be_sized_after_detach(cx: &Context) {
    let device = attached(cx);
    device.detach().expect("detached");
    assert_eq!(device.init_trace(COVER_SIZE), Ok(()));
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
}
