//! Just enough ELF to tell whether a guest could run a program.

/// Says why a guest that has no libraries cannot run this program, if it
/// cannot.
pub fn unfit(bytes: &[u8]) -> Option<&'static str> {
    const X86_64: u16 = 62;
    const INTERPRETER: u32 = 3;
    let half = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    if !bytes.starts_with(b"\x7fELF") {
        return Some("is not an ELF program");
    }
    // 64-bit, little-endian.
    if !bytes[4..].starts_with(&[2, 1]) || half(18) != Some(X86_64) {
        return Some("is not a program for x86_64");
    }
    let dynamic = || {
        let start = usize::try_from(long(32)?).ok()?;
        let (size, count) = (usize::from(half(54)?), usize::from(half(56)?));
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

    #[test]
    fn only_static_programs_are_fit() {
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
