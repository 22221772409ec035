//! Things that safe code must not be able to do, tested on fake kernels. Each test covers a past
//! fault of this crate.

use kcov::fake::Kernel;
use kcov::mode::{AnyMode, TraceCmp, TracePc};
use kcov::remote::linux::{CommonHandle, Remote};
use kcov::remote::netbsd::Source;
use kcov::{BufferSize, Comparison, Completeness, Device, ErrorKind, Operation, Pc, Trace};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const PC: u64 = 0xffff_ffff_8100_0010;
const COMPARISON: Comparison = Comparison::from_words([7, 1, 2, PC]);

fn open(kernel: &Kernel) -> Device {
    kernel.builder().size(BufferSize::words(1)).open().expect("it opens")
}

/// A stale count must not reach a request that enables. With one, NetBSD and Linux 6.1 write in
/// front of the buffer in comparison mode; the fake kernel panics instead.
#[test]
fn a_hostile_count_never_reaches_a_request() {
    for kernel in [Kernel::linux(), Kernel::netbsd()] {
        let mut device = open(&kernel);
        for count in [u64::MAX, 1 << 62, (1 << 62) - 1] {
            device.enable(TracePc).expect("enabled").disable().expect("disabled");
            kernel.store_counts(count);
            let session = device.enable(TraceCmp).expect("enabled");
            kernel.call(|trace| trace.comparison(COMPARISON));
            assert_eq!(session.trace().iter().collect::<Vec<_>>(), [COMPARISON]);
            kernel.store_counts(count);
            drop(session);

            let mut buffer = device.child_buffer(TraceCmp).expect("it is free");
            kernel.store_counts(count);
            drop(buffer.enable().expect("enabled"));
        }
    }
}

/// After a session of program counters, nothing reads its records as comparisons.
#[test]
fn a_buffer_for_children_has_nothing_of_another_mode() {
    for kernel in [Kernel::linux(), Kernel::netbsd()] {
        let mut device = open(&kernel);
        let session = device.enable(TracePc).expect("enabled");
        kernel.call(|trace| (0..40).for_each(|n| trace.pc(PC + n)));
        assert_eq!(session.disable().expect("disabled").trace().len(), 40);
        let buffer = device.child_buffer(TraceCmp).expect("it is free");
        let trace = buffer.trace().expect("readable");
        assert!(trace.is_empty());
        assert_eq!(trace.completeness(), Completeness::Complete);
    }
}

/// A leaked session stays in its mode, so a buffer for children ends it first.
#[test]
fn a_buffer_that_is_traced_into_is_not_for_children() {
    for kernel in [Kernel::linux(), Kernel::netbsd()] {
        let mut device = open(&kernel);
        std::mem::forget(device.enable(TracePc).expect("enabled"));
        let buffer = device.child_buffer(TraceCmp).expect("it is free now");
        kernel.call(|trace| trace.pc(PC));
        assert!(buffer.trace().expect("readable").is_empty() && !kernel.is_traced());
    }
}

/// A count that no driver stores gives no records, and no records of an earlier session appear.
#[test]
fn corruption_is_no_truncation_and_no_coverage() {
    let kernel = Kernel::linux();
    let mut device = open(&kernel);
    let capacity = device.capacity(TracePc) as u64;
    let session = device.enable(TracePc).expect("enabled");
    kernel.call(|trace| (0..9).for_each(|n| trace.pc(PC + n)));
    drop(session);
    let session = device.enable(TracePc).expect("enabled");
    for count in [capacity + 1, 1 << 32, u64::MAX] {
        kernel.store_counts(count);
        let trace = session.trace();
        let completeness = trace.completeness();
        assert!(
            matches!(completeness, Completeness::Corrupt { count: stored, .. } if stored == count)
        );
        assert!(trace.is_empty() && !trace.is_truncated());
        assert_eq!((trace.iter().next(), trace.get(0)), (None, None));
    }
    kernel.store_counts(capacity);
    assert_eq!(session.trace().completeness(), Completeness::Truncated);
    kernel.store_counts(u64::MAX);
    // The trace stays corrupt when the session has ended.
    let recorded = session.disable().expect("disabled");
    let trace = recorded.trace();
    let completeness = trace.completeness();
    assert!(trace.is_empty());
    assert!(matches!(completeness, Completeness::Corrupt { count: u64::MAX, .. }));
    // The next session starts afresh.
    let recorded = device.enable(TracePc).expect("enabled").disable().expect("disabled");
    let trace = recorded.trace();
    assert_eq!((trace.len(), trace.completeness()), (0, Completeness::Complete));
}

/// A file that is not kcov receives no request.
#[cfg(unix)]
#[test]
fn other_files_are_refused_by_name() {
    let file = std::env::temp_dir().join(format!("kcov-soundness-{}", std::process::id()));
    std::fs::write(&file, [0; 4096]).expect("a file");
    for path in [std::path::Path::new("/dev/null"), &file] {
        let error = Device::builder().path(path).open().expect_err("not kcov");
        if cfg!(any(target_os = "linux", target_os = "netbsd")) {
            assert_eq!((error.operation(), error.kind()), (Operation::Open, ErrorKind::NotKcov));
            assert_eq!((error.raw_os_error(), error.path()), (None, Some(path)));
        } else {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }
    std::fs::remove_file(file).expect("removed");
}

/// A late section must not reach the next case through a lost reset.
#[test]
fn remote_records_are_read_from_marks() {
    let kernel = Kernel::linux();
    let session = open(&kernel).into_remote_session(TracePc, &Remote::new().any_common());
    let mut session = session.expect("enabled");
    let handle = session.common_handle().expect("one was found");
    let list = |trace: Trace<'_, TracePc>| trace.iter().map(Pc::address).collect::<Vec<_>>();
    let pcs = |trace: Option<Trace<'_, TracePc>>| list(trace.expect("its own mark"));
    let soon = || Instant::now() + Duration::from_secs(9);
    kernel.section(handle).run(|trace| trace.pc(1));
    let first = session.mark();
    let mut late = kernel.section(handle);
    late.run(|trace| trace.pc(2));
    assert_eq!(pcs(session.since(first)), [], "a section counts when it ends");
    drop(late);
    kernel.section(handle).run(|trace| trace.pc(3));
    assert_eq!((list(session.trace()), pcs(session.since(first))), (vec![1, 2, 3], vec![2, 3]));
    assert_eq!(pcs(session.wait(first, 2, soon())), [2, 3]);

    // Sections that run during a restart are discarded, even with the same handle.
    let mut late = kernel.section(handle);
    late.run(|trace| trace.pc(4));
    let old = session.mark();
    session.restart().expect("enabled again");
    assert_eq!(session.common_handle(), Some(handle));
    drop(late);
    assert!(session.trace().is_empty());
    kernel.section(handle).run(|trace| trace.pc(5));
    assert_eq!(list(session.trace()), [5]);
    assert!(session.since(old).is_none() && session.wait(old, 1, soon()).is_none());
    assert!(session.settle(Duration::from_millis(1), soon()));
    session.disable().expect("the device is back");
}

#[test]
fn a_free_handle_is_found_where_others_are_taken() {
    let kernel = Kernel::linux();
    let taken = CommonHandle::new(NonZeroU32::MIN);
    let one = open(&kernel).into_remote_session(TracePc, &Remote::new().common(taken));
    let _one = one.expect("enabled");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let refused = open(&kernel).into_remote_session(TracePc, &Remote::new().common(taken));
            assert_eq!(refused.expect_err("it is taken").kind(), ErrorKind::HandleInUse);
            // The first number that it tries is taken as well.
            kernel.fail(Operation::EnableRemote, 17);
            let session = open(&kernel).into_remote_session(TracePc, &Remote::new().any_common());
            assert_ne!(session.expect("another one").common_handle(), Some(taken));
        });
    });
}

/// Two sessions on one source in one process could read each other's records.
#[test]
fn a_source_is_attached_once() {
    let kernel = Kernel::netbsd();
    let source = Source::vhci(0, 3);
    let mut attachment = open(&kernel).attach(source).expect("attached");
    let refused = open(&kernel).attach(source).expect_err("attached already");
    assert_eq!(refused.kind(), ErrorKind::SourceInUse);
    drop(open(&Kernel::netbsd()).attach(source).expect("another kernel's source"));
    let refused = open(&kernel).attach(source).expect_err("still attached");
    assert_eq!(refused.kind(), ErrorKind::SourceInUse);
    let session = attachment.enable(TracePc).expect("enabled");
    kernel.section(source).run(|trace| trace.pc(PC));
    assert_eq!(session.disable().expect("disabled").trace().len(), 1);
    let session = attachment.enable(TraceCmp).expect("enabled");
    assert!(session.trace().is_empty(), "nothing of the other mode");
    drop(session);
    drop(attachment.detach());
    drop(open(&kernel).attach(source).expect("it is free again"));
    let missing = open(&kernel).attach(Source::vhci(1, 0)).expect_err("no such bus");
    assert_eq!(missing.kind(), ErrorKind::NoSuchSource);
}

/// After a failed restart, the source may be another program's, whose collection goes on.
#[test]
fn a_session_that_ended_does_not_end_another() {
    let kernel = Kernel::netbsd();
    let source = Source::vhci(0, 3);
    let mut attachment = open(&kernel).attach(source).expect("attached");
    let other = kernel.open_raw().expect("it opens");
    other.attach(0, 3).expect("attached");
    for ended_elsewhere in [false, true] {
        let mut session = attachment.enable(TracePc).expect("enabled");
        let expected = if ended_elsewhere {
            other.disable().expect("anybody may end it");
            ErrorKind::EndedElsewhere
        } else {
            // Another program is faster.
            kernel.fail(Operation::EnableRemote, 16);
            ErrorKind::SourceInUse
        };
        assert_eq!(session.restart().expect_err("it ended").kind(), expected);
        other.enable(1).expect("the source is free");
        assert_eq!(session.restart().expect_err("it ended").kind(), expected);
        drop(session);
        other.disable().expect("it still collects");
    }
}

/// A failed operation that took a device closes it and leaves nothing enabled.
#[test]
fn a_refused_device_is_closed() {
    for (kernel, errno) in [(Kernel::linux(), 22), (Kernel::netbsd(), 16)] {
        kernel.fail(Operation::Enable, errno);
        let refused = open(&kernel).into_session(AnyMode::TracePc).expect_err("as ordered");
        assert_eq!((refused.kind(), kernel.open_devices()), (ErrorKind::AlreadyEnabled, 0));
        let session = open(&kernel).into_session(AnyMode::TracePc).expect("enabled");
        kernel.fail(Operation::Disable, 2);
        let refused = session.disable().expect_err("as ordered");
        assert_eq!(refused.operation(), Operation::Disable);
        // The device disables what is still enabled.
        assert_eq!((kernel.open_devices(), kernel.is_traced()), (0, false));
    }
}

/// Dropping in any order leaves nothing enabled.
#[test]
fn nothing_is_left_behind() {
    for kernel in [Kernel::linux(), Kernel::netbsd()] {
        let session = open(&kernel).into_session(TracePc).expect("enabled");
        assert!(kernel.is_traced());
        drop(session);
        let mut device = open(&kernel);
        std::mem::forget(device.enable(TracePc).expect("enabled"));
        assert!(kernel.is_traced());
        drop(device);
        assert_eq!((kernel.open_devices(), kernel.is_traced()), (0, false));
    }
}

/// A mark of one session means nothing to another.
#[test]
fn marks_belong_to_their_session() {
    let kernel = Kernel::linux();
    let remote = Remote::new().any_common();
    let session = open(&kernel).into_remote_session(TracePc, &remote).expect("enabled");
    let handle = session.common_handle().expect("one was found");
    kernel.section(handle).run(|trace| trace.pc(1));
    let mark = session.mark();
    drop(session);
    let session = open(&kernel).into_remote_session(TracePc, &remote).expect("enabled");
    assert!(session.since(mark).is_none());
    assert_eq!(session.since(session.mark()).map(|trace| trace.len()), Some(0));
}

/// Records of a mode chosen at run time are read in that mode alone.
#[test]
fn a_trace_of_any_mode_becomes_one_of_its_own() {
    let kernel = Kernel::netbsd();
    let mut device = open(&kernel);
    for mode in [AnyMode::TracePc, AnyMode::TraceCmp] {
        let session = device.enable(mode).expect("enabled");
        kernel.call(|trace| {
            trace.pc(PC);
            trace.comparison(COMPARISON);
        });
        let recorded = session.disable().expect("disabled");
        let trace = recorded.trace();
        let pcs = trace.as_pc().map(|trace| trace.iter().collect::<Vec<_>>());
        let comparisons = trace.as_cmp().map(|trace| trace.iter().collect::<Vec<_>>());
        let expected = match mode {
            AnyMode::TracePc => (Some(vec![Pc::new(PC)]), None),
            _ => (None, Some(vec![COMPARISON])),
        };
        assert_eq!(((pcs, comparisons), recorded.mode()), (expected, mode));
    }
}

/// An abandoned device makes no request: its descriptor may be another file's.
#[test]
fn an_abandoned_device_is_left_alone() {
    for kernel in [Kernel::linux(), Kernel::netbsd()] {
        let mut device = open(&kernel);
        std::mem::forget(device.enable(TracePc).expect("enabled"));
        device.abandon();
        assert_eq!((kernel.open_devices(), kernel.is_traced()), (1, true));
    }
}

/// After fork(2) in a process with threads, nothing may allocate.
#[test]
fn errors_become_io_errors_with_the_errno() {
    let kernel = Kernel::linux();
    kernel.fail(Operation::Open, 13);
    let error = kernel.builder().open().expect_err("as ordered");
    assert_eq!(std::io::Error::from(error).raw_os_error(), Some(13));
    let over = BufferSize::words(u64::MAX);
    let error = kernel.builder().size(over).open().expect_err("over the limit");
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::InvalidInput);
}

/// A refused request to disable, as in a forked child, must not turn a corrupt trace into an empty
/// one.
#[test]
fn a_refused_end_keeps_a_corrupt_count() {
    for (kernel, errno) in [(Kernel::linux(), 22), (Kernel::netbsd(), 2)] {
        let mut buffer = open(&kernel).into_child_buffer(TracePc).expect("it is free");
        let session = buffer.enable().expect("enabled");
        kernel.store_counts(1 << 40);
        kernel.fail(Operation::Disable, errno);
        drop(session);
        let trace = buffer.trace().expect("readable");
        let completeness = trace.completeness();
        assert!(matches!(completeness, Completeness::Corrupt { count, .. } if count == 1 << 40));
    }
}

/// Another thread may be traced into the buffer of a device that refuses to be enabled.
#[test]
fn a_refused_enable_keeps_the_records() {
    for kernel in [Kernel::linux(), Kernel::netbsd()] {
        let mut buffer = open(&kernel).into_child_buffer(TracePc).expect("it is free");
        std::thread::scope(|scope| {
            let (send, receive) = std::sync::mpsc::channel();
            let (done, end) = std::sync::mpsc::channel::<()>();
            let kernel = &kernel;
            scope.spawn(move || {
                let session = buffer.enable().expect("enabled");
                kernel.call(|trace| (0..10).for_each(|n| trace.pc(PC + n)));
                std::mem::forget(session);
                send.send(buffer).expect("somebody waits");
                let _ = end.recv();
            });
            let mut buffer = receive.recv().expect("the buffer");
            let refused = buffer.enable().expect_err("it is traced into");
            assert_eq!(refused.kind(), ErrorKind::AlreadyEnabled);
            assert_eq!(buffer.trace().expect("readable").len(), 10);
            // Nor does a corrupt trace become an empty one.
            kernel.store_counts(1 << 40);
            assert!(buffer.enable().is_err());
            let completeness = buffer.trace().expect("readable").completeness();
            assert!(
                matches!(completeness, Completeness::Corrupt { count, .. } if count == 1 << 40)
            );
            kernel.store_counts(10);
            let refused = buffer.into_device().into_child_buffer(TraceCmp);
            assert_eq!(refused.expect_err("still traced").kind(), ErrorKind::AlreadyEnabled);
            drop(done);
        });
    }
}

/// Records behind a mark are those of this session, whatever count a target stores.
#[test]
fn a_count_that_falls_below_a_mark_is_corrupt() {
    let kernel = Kernel::linux();
    let session = open(&kernel).into_remote_session(TracePc, &Remote::new().any_common());
    let session = session.expect("enabled");
    let handle = session.common_handle().expect("one was found");
    kernel.section(handle).run(|trace| (0..5).for_each(|n| trace.pc(PC + n)));
    let is_corrupt = |mark| {
        let trace = session.since(mark).expect("its own mark");
        trace.is_empty() && matches!(trace.completeness(), Completeness::Corrupt { .. })
    };
    let mark = session.mark();
    assert!(!is_corrupt(mark));
    kernel.store_counts(2);
    assert!(is_corrupt(mark));
    kernel.store_counts(u64::MAX);
    let mark = session.mark();
    kernel.store_counts(5);
    assert!(is_corrupt(mark));
}

/// A section of NetBSD records in the mode that the source has, not in that of its start.
#[test]
fn a_section_that_outlasts_its_session_records_in_the_next_ones_mode() {
    let kernel = Kernel::netbsd();
    let source = Source::vhci(0, 3);
    let mut attachment = open(&kernel).attach(source).expect("attached");
    let session = attachment.enable(TracePc).expect("enabled");
    let mut section = kernel.section(source);
    section.run(|trace| trace.pc(PC));
    let recorded = session.disable().expect("disabled");
    section.run(|trace| trace.pc(PC));
    assert_eq!(recorded.trace().len(), 1);
    let session = attachment.enable(TraceCmp).expect("enabled");
    section.run(|trace| {
        (0..3).for_each(|n| trace.pc(PC + n));
        trace.comparison(COMPARISON);
    });
    assert_eq!(session.trace().iter().collect::<Vec<_>>(), [COMPARISON]);
}

/// A failed assertion shows the device, but not its hundred thousands of words.
#[test]
fn a_device_of_a_fake_kernel_is_shown_without_its_words() {
    let kernel = Kernel::netbsd();
    let attachment = kernel.builder().open().expect("it opens").attach(Source::vhci(0, 5));
    let session = attachment.expect("attached").into_session(TracePc).expect("enabled");
    kernel.call(|trace| assert!(format!("{session:?} {kernel:?} {trace:?}").len() < 10_000));
}

/// A path that is missing says nothing about the kernel.
#[cfg(target_os = "linux")]
#[test]
fn an_empty_path_is_no_missing_feature() {
    let error = Device::builder().path("").open().expect_err("no file");
    assert_eq!(error.kind(), ErrorKind::DebugfsNotMounted);
}
