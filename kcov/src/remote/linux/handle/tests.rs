//! The argument that is passed to the kernel.

use super::*;

const BUS: GlobalHandle = GlobalHandle::usb(3);

#[test]
fn handles_are_packed_as_the_header_says() {
    assert_eq!(BUS.raw(), 0x0100_0000_0000_0003);
    assert_eq!(GlobalHandle::from_raw(7).raw(), 7);
    assert_eq!(CommonHandle::new(NonZeroU32::MAX).raw(), 0xffff_ffff);
}

#[test]
fn the_argument_counts_its_handles() {
    let common = CommonHandle::new(NonZeroU32::MIN);
    let remote = Remote::new().global(BUS).global(GlobalHandle::usb(4)).common(common);
    let argument = remote.argument(1, 512, Width::W64).unwrap();
    assert_eq!((argument.trace_mode, argument.area_size, argument.num_handles), (1, 512, 2));
    assert_eq!(argument.common_handle, 1);
    assert_eq!(argument.handles[..3], [0x0100_0000_0000_0003, 0x0100_0000_0000_0004, 0]);
}

#[test]
fn what_the_kernel_would_refuse_or_choke_on_is_refused() {
    let many = (0..257).fold(Remote::new(), |remote, bus| remote.global(GlobalHandle::usb(bus)));
    let error = many.argument(0, 512, Width::W64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyHandles);
    for (width, most) in [(Width::W64, u32::MAX), (Width::W32, 0x1fff_ffff)] {
        let argument = |words| Remote::new().area_words(words).argument(0, 512, width);
        for words in (0..3).chain(most.checked_add(1)) {
            let error = argument(words).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SizeOutOfLimits);
            assert_eq!(error.limits().cloned(), Some(3..=most.into()));
        }
        for words in [3, most] {
            assert_eq!(argument(words).unwrap().area_size, words);
        }
    }
}

#[test]
fn a_port_of_netbsd_is_bus_and_port_in_one_number() {
    let source = crate::remote::netbsd::Source::vhci(1, 2);
    assert_eq!(source, crate::remote::netbsd::Source::new(0, 0x1_0000_0002));
}
