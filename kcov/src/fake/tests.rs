//! Edge cases of the kernel for tests.

use super::Kernel;
use crate::mode::{AnyMode, TraceCmp, TracePc};
use crate::remote::linux::{GlobalHandle, Remote};
use crate::remote::netbsd::Source;
use crate::{BufferSize, Comparison, ErrorKind, Operation, Pc};

fn kernels() -> [Kernel; 2] {
    [Kernel::linux(), Kernel::netbsd()]
}

#[test]
fn a_full_buffer_drops_and_keeps() {
    for kernel in kernels() {
        let mut device = kernel.builder().size(BufferSize::words(1)).open().unwrap();
        let capacity = device.capacity(TracePc);
        let mut session = device.enable(TracePc).unwrap();
        kernel.call(|trace| (0..capacity as u64 + 5).for_each(|pc| trace.pc(pc)));
        let trace = session.trace();
        assert!(trace.is_truncated());
        assert_eq!(trace.iter().last(), Some(Pc::new(capacity as u64 - 1)));
        session.reset();
        kernel.call(|trace| trace.pc(7));
        assert_eq!(session.trace().len(), 1);
        drop(session);
        let capacity = device.capacity(TraceCmp);
        let session = device.enable(TraceCmp).unwrap();
        let one = Comparison::from_words([1, 2, 3, 4]);
        kernel.call(|trace| (0..=capacity).for_each(|_| trace.comparison(one)));
        assert_eq!((session.trace().len(), session.trace().get(0)), (capacity, Some(one)));
    }
}

#[test]
fn requests_are_recorded_and_left_out() {
    for kernel in kernels() {
        let mut device = kernel.builder().open().unwrap();
        for &mode in AnyMode::ALL {
            let session = device.enable(mode).unwrap();
            assert!(session.trace().is_empty(), "the end of enabling");
            assert!(session.disable().unwrap().trace().is_empty(), "the start of disabling");
        }
    }
}

#[test]
fn errors_can_be_ordered() {
    for kernel in kernels() {
        for operation in [Operation::Open, Operation::SetSize, Operation::Map] {
            kernel.fail(operation, 12);
            let error = kernel.builder().open().unwrap_err();
            let expected = match (operation, kernel.system.has_handles) {
                (Operation::Open, false) => ErrorKind::Other,
                _ => ErrorKind::OutOfMemory,
            };
            assert_eq!((error.operation(), error.kind()), (operation, expected));
        }
        assert_eq!(kernel.open_devices(), 0);
    }
}

/// Enabling and disabling an attached device are operations of their own.
#[test]
fn errors_of_sources_can_be_ordered() {
    let kernel = Kernel::netbsd();
    let device = kernel.builder().open().unwrap();
    let mut attachment = device.attach(Source::vhci(0, 5)).unwrap();
    kernel.fail(Operation::EnableRemote, 16);
    let error = attachment.enable(TracePc).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceInUse);
    let session = attachment.enable(TracePc).unwrap();
    kernel.fail(Operation::DisableRemote, 2);
    assert_eq!(session.disable().unwrap_err().kind(), ErrorKind::EndedElsewhere);
    // Detaching obeys no order.
    kernel.fail(Operation::DisableRemote, 2);
    let device = attachment.detach();
    drop(device.attach(Source::vhci(0, 6)).unwrap());
    // Without a source, the same requests have the other names.
    let mut device = kernel.builder().open().unwrap();
    kernel.fail(Operation::EnableRemote, 16);
    let session = device.enable(TracePc).unwrap();
    kernel.fail(Operation::Disable, 2);
    assert_eq!(session.disable().unwrap_err().kind(), ErrorKind::NotEnabled);
}

/// A section drops what its area cannot hold; the next section has its own area.
#[test]
fn a_section_fills_its_area_and_no_more() {
    let kernel = Kernel::linux();
    let remote = Remote::new().any_common().area_words(4);
    let mut device = kernel.builder().open().unwrap();
    let session = device.enable_remote(TracePc, &remote).unwrap();
    for _ in 0..2 {
        let mut section = kernel.section(session.common_handle().unwrap());
        section.run(|trace| (0..9).for_each(|pc| trace.pc(pc)));
    }
    let pcs: Vec<u64> = session.trace().iter().map(Pc::address).collect();
    assert_eq!(pcs, [0, 1, 2, 0, 1, 2]);
    // Too small for any record.
    drop(session);
    let remote = remote.area_words(3);
    let session = device.enable_remote(TraceCmp, &remote).unwrap();
    let mut section = kernel.section(session.common_handle().unwrap());
    section.run(|trace| trace.comparison(Comparison::from_words([1, 2, 3, 4])));
    drop(section);
    assert!(session.trace().is_empty());
}

/// The kernel refuses them with the errno of a device that is enabled.
#[test]
fn handles_that_the_kernel_does_not_know_are_told() {
    let kernel = Kernel::linux();
    let mut device = kernel.builder().open().unwrap();
    for handle in [0xfe << 56 | 1, 1, 1 << 56 | 1 << 32, 1 << 56 | 1 << 55] {
        let remote = Remote::new().global(GlobalHandle::from_raw(handle));
        let error = device.enable_remote(TracePc, &remote).unwrap_err();
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::UnknownSubsystem, Some(22)));
    }
}

/// Another program's requests for a handle or a source, one at a time.
#[test]
fn another_program_shares_the_kernel() {
    let kernel = Kernel::linux();
    let other = kernel.open_raw().unwrap();
    let page = crate::sys::page_size();
    other.set_size(page as u64 / 8).unwrap();
    other.map(page).unwrap();
    other.enable_remote(0, 64, &[GlobalHandle::usb(1).raw()], 0).unwrap();
    let mut device = kernel.builder().open().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let remote = Remote::new().global(GlobalHandle::usb(1));
            let error = device.enable_remote(TracePc, &remote).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::HandleInUse);
        });
    });
    other.disable().unwrap();

    let kernel = Kernel::netbsd();
    let attachment = kernel.builder().open().unwrap().attach(Source::vhci(0, 6)).unwrap();
    let session = attachment.into_session(TracePc).unwrap();
    let other = kernel.open_raw().unwrap();
    other.attach(0, 6).unwrap();
    other.detach().unwrap();
    let error = session.disable().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EndedElsewhere);
}

#[test]
fn the_end_of_a_thread_disables() {
    for kernel in kernels() {
        let mut device = kernel.builder().open().unwrap();
        std::thread::scope(|scope| {
            let device = &mut device;
            scope.spawn(|| std::mem::forget(device.enable(TracePc).unwrap())).join().unwrap();
        });
        drop(device.enable(TracePc).unwrap());
    }
}

#[test]
fn modes_that_are_not_built_in_are_refused() {
    let kernel = Kernel::linux().without_comparisons();
    let mut device = kernel.builder().open().unwrap();
    let error = device.enable(TraceCmp).unwrap_err();
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::ModeNotBuiltIn, Some(524)));
    assert_eq!(device.child_buffer(TraceCmp).unwrap_err().kind(), ErrorKind::ModeNotBuiltIn);
    drop(device.enable(TracePc).unwrap());
}

#[cfg(unix)]
#[test]
fn a_descriptor_is_given_away() {
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    let kernel = Kernel::linux();
    let device = kernel.builder().min_fd(100).open().unwrap();
    let number = device.as_fd().as_raw_fd();
    assert_eq!(OwnedFd::from(device).as_raw_fd(), number, "it takes no other descriptor");
    assert_eq!(kernel.open_devices(), 0);
}
