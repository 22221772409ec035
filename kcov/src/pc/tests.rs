//! Addresses of every architecture and system.

use super::*;
use crate::system::{LINUX, NETBSD};

#[test]
fn calls_lie_before_their_return_addresses_on_every_architecture() {
    for &arch in Arch::ALL {
        let pc = Pc::new(0xffff_ffff_8100_0010);
        assert_eq!(pc.address() - pc.call_site(arch).address(), arch.call_length(), "{arch:?}");
        // No call can return to 0.
        assert_eq!(Pc::new(0).call_site(arch).address(), arch.call_length().wrapping_neg());
    }
}

#[test]
fn the_low_bit_of_thumb_code_is_no_part_of_the_address() {
    assert_eq!(Pc::new(0xc010_0005).call_site(Arch::Arm).address(), 0xc010_0000);
}

#[test]
fn each_system_is_converted_by_its_own_rule() {
    let (linked, running) = (Pc::new(0xffff_ffff_8100_0010), Pc::new(0xffff_ffff_9e20_0010));
    let offset = 0x1d20_0000;
    assert_eq!(LINUX.link_time(linked, offset), linked);
    assert_eq!(LINUX.run_time(linked, offset), running);
    assert_eq!(NETBSD.link_time(running, offset), linked);
    assert_eq!(NETBSD.run_time(running, offset), running);
    // A module lies below the kernel, so its recorded address may look odd.
    let module = Pc::new(0xffff_ffff_c000_0010);
    let recorded = NETBSD.link_time(module, 0x3000_0000);
    assert_eq!(LINUX.run_time(recorded, 0x3000_0000), module);
}

#[test]
fn addresses_are_written_as_tools_read_them() {
    let pc = Pc::new(0x1005);
    assert_eq!((pc.to_string(), format!("{pc:?}")), ("0x1005".into(), "Pc(0x1005)".into()));
    assert_eq!(format!("{pc:x} {pc:#010x}"), "1005 0x00001005");
    let site = pc.call_site(Arch::X86_64);
    assert_eq!(format!("{site} {site:?}"), "0x1000 CallSite(0x1000)");
}
