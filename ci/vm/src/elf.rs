//! Parses enough ELF to tell whether a guest can run a program, and with which
//! loader.

/// Returns the program's loader, or `None` for a static program. The error says
/// why no guest can run it.
pub fn loader(bytes: &[u8]) -> Result<Option<String>, &'static str> {
    const I386: u16 = 3;
    const X86_64: u16 = 62;
    const INTERPRETER: u32 = 3;
    let half = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    if bytes.starts_with(b"#!") {
        return Err(
            "is a script, not an ELF program: give its interpreter as the program, and the script \
             as an argument and with --carry",
        );
    }
    if !bytes.starts_with(b"\x7fELF") {
        return Err("is not an ELF program");
    }
    // The offsets of the segment table, of its entry size and of its entry
    // count, all little-endian; then the offsets of a segment's position and
    // size in its entry.
    let wide = bytes.get(4) == Some(&2);
    let (start, size, count) = match (bytes.get(4..6), half(18)) {
        (Some([2, 1]), Some(X86_64)) => (long(32), half(54), half(56)),
        (Some([1, 1]), Some(I386)) => (word(28).map(u64::from), half(42), half(44)),
        _ => return Err("is not a program for x86_64 or i386"),
    };
    let field = |at: usize| if wide { long(at) } else { word(at).map(u64::from) };
    let (place, length) = if wide { (8, 32) } else { (4, 16) };
    let find = || {
        let start = usize::try_from(start?).ok()?;
        let (size, count) = (usize::from(size?), usize::from(count?));
        for index in 0..count {
            let entry = start.checked_add(index * size)?;
            if word(entry)? == INTERPRETER {
                let from = usize::try_from(field(entry + place)?).ok()?;
                let length = usize::try_from(field(entry + length)?).ok()?;
                let name = bytes.get(from..from.checked_add(length)?)?.strip_suffix(b"\0")?;
                return Some(Some(String::from_utf8(name.to_vec()).ok()?));
            }
        }
        Some(None)
    };
    find().ok_or("is a damaged ELF file")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &[u8] = b"/lib/ld.so\0";

    /// A program with these segments. All of them are the name at its end.
    fn program(segments: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = 62;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = segments.len() as u8;
        let end = 64 + 56 * segments.len() as u64;
        for kind in segments {
            let mut entry = [0; 56];
            entry[..4].copy_from_slice(&kind.to_le_bytes());
            entry[8..16].copy_from_slice(&end.to_le_bytes());
            entry[32] = NAME.len() as u8;
            bytes.extend_from_slice(&entry);
        }
        [&bytes, NAME].concat()
    }

    fn program_32(segments: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 52];
        bytes[..6].copy_from_slice(b"\x7fELF\x01\x01");
        bytes[18] = 3;
        bytes[28] = 52;
        bytes[42] = 32;
        bytes[44] = segments.len() as u8;
        let end = 52 + 32 * segments.len() as u32;
        for kind in segments {
            let mut entry = [0; 32];
            entry[..4].copy_from_slice(&kind.to_le_bytes());
            entry[4..8].copy_from_slice(&end.to_le_bytes());
            entry[16] = NAME.len() as u8;
            bytes.extend_from_slice(&entry);
        }
        [&bytes, NAME].concat()
    }

    #[test]
    fn dynamic_programs_name_their_loader() {
        for program in [program, program_32] {
            assert_eq!(loader(&program(&[1, 2])), Ok(None));
            assert_eq!(loader(&program(&[1, 3])), Ok(Some("/lib/ld.so".into())));
        }
    }

    #[test]
    fn anything_else_is_told_apart() {
        assert!(loader(b"#!/bin/sh").is_err_and(|why| why.contains("a script, not an ELF")));
        assert!(loader(b"\x7fELF\x01").is_err_and(|why| why.contains("x86_64")));
        assert!(loader(&program(&[1, 2])[..100]).is_err_and(|why| why.contains("damaged")));
        let whole = program(&[1, 3]);
        let cut = &whole[..whole.len() - 1];
        assert!(loader(cut).is_err_and(|why| why.contains("damaged")));
    }
}
