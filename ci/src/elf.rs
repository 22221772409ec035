//! Just enough ELF to tell whether a guest could run a program.

/// Says why a guest that has no libraries cannot run this program, if it
/// cannot.
pub fn unfit(bytes: &[u8]) -> Option<&'static str> {
    const I386: u16 = 3;
    const X86_64: u16 = 62;
    const INTERPRETER: u32 = 3;
    let half = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    if !bytes.starts_with(b"\x7fELF") {
        return Some("is not an ELF program");
    }
    // Where the segments are listed, and how large and how many the entries
    // are; little-endian.
    let (start, size, count) = match (bytes.get(4..6), half(18)) {
        (Some([2, 1]), Some(X86_64)) => (long(32), half(54), half(56)),
        (Some([1, 1]), Some(I386)) => (word(28).map(u64::from), half(42), half(44)),
        _ => return Some("is not a program for x86_64 or i386"),
    };
    let dynamic = || {
        let start = usize::try_from(start?).ok()?;
        let (size, count) = (usize::from(size?), usize::from(count?));
        (0..count)
            .map(|index| word(start.checked_add(index * size)?))
            .try_fold(false, |found, kind| Some(found || kind? == INTERPRETER))
    };
    match dynamic() {
        Some(false) => None,
        Some(true) => Some(
            "is dynamically linked and a guest has no libraries; build it with \
             RUSTFLAGS='-C target-feature=+crt-static' --target x86_64-unknown-linux-gnu",
        ),
        None => Some("is a damaged ELF file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(segments: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = 62;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = segments.len() as u8;
        for kind in segments {
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&[0; 52]);
        }
        bytes
    }

    fn program_32(segments: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 52];
        bytes[..6].copy_from_slice(b"\x7fELF\x01\x01");
        bytes[18] = 3;
        bytes[28] = 52;
        bytes[42] = 32;
        bytes[44] = segments.len() as u8;
        for kind in segments {
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&[0; 28]);
        }
        bytes
    }

    #[test]
    fn only_static_programs_are_fit() {
        assert_eq!(unfit(&program_32(&[1, 2])), None);
        assert!(unfit(&program_32(&[1, 3])).is_some_and(|why| why.contains("dynamically")));
        assert_eq!(unfit(&program(&[1, 2])), None);
        assert!(unfit(&program(&[1, 3])).is_some_and(|why| why.contains("dynamically")));
    }

    #[test]
    fn anything_else_is_told_apart() {
        assert!(unfit(b"#!/bin/sh").is_some_and(|why| why.contains("not an ELF")));
        assert!(unfit(b"\x7fELF\x01").is_some_and(|why| why.contains("x86_64")));
        assert!(unfit(&program(&[1, 2])[..100]).is_some_and(|why| why.contains("damaged")));
    }
}
