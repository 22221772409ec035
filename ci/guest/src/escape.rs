//! Writes any bytes as printable ASCII.

/// Returns `bytes` with each backslash and non-printable byte as `\xNN`.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' => text.push_str("\\x5c"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text += &format!("\\x{byte:02x}"),
        }
    }
    text
}

/// Reverses [`escape`]. Returns `None` for other text.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = match first {
            b'\\' => {
                let (code, tail) = tail.strip_prefix(b"x")?.split_at_checked(2)?;
                let high = char::from(code[0]).to_digit(16)?;
                let low = char::from(code[1]).to_digit(16)?;
                bytes.push((high * 16 + low) as u8);
                tail
            }
            b' '..=b'~' => {
                bytes.push(first);
                tail
            }
            _ => return None,
        };
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives() {
        let all: Vec<u8> = (0..=255).collect();
        let text = escape(&all);
        assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert_eq!(unescape(&text), Some(all));
    }

    #[test]
    fn what_escape_cannot_have_written_is_refused() {
        for text in ["\\", "\\x", "\\x1", "\\n", "\\xg0", "\\x+1", "tab\t", "é"] {
            assert_eq!(unescape(text), None, "{text:?}");
        }
    }
}
