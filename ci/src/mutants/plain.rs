//! Simplifies kernel C for a parser without a preprocessor. Omitted text becomes blanks, so
//! positions in the plain text equal those in the original.

use super::subject::Subject;

/// Blanks out code that this configuration omits and macros that are not C.
pub fn plain(text: &str, config: &str, subject: &Subject) -> String {
    let mut bytes = configured(text, config, subject).into_bytes();
    for name in &subject.attributes {
        for start in words(&bytes, name) {
            let end = start + name.len();
            let close = arguments(&bytes, end).map_or(end, |(_, close)| close + 1);
            blank(&mut bytes, start, close);
        }
    }
    for name in &subject.wrappers {
        for start in words(&bytes, name) {
            if let Some((open, close)) = arguments(&bytes, start + name.len()) {
                blank(&mut bytes, start, open + 1);
                blank(&mut bytes, close, close + 1);
            }
        }
    }
    String::from_utf8(bytes).expect("only ASCII became blanks")
}

/// Evaluates `#ifdef` and similar lines for the defined names and the configuration's options.
fn configured(text: &str, config: &str, subject: &Subject) -> String {
    let is_set = |name: &str| {
        let is_defined = subject.defined.iter().any(|defined| defined == name);
        is_defined
            || config.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest == "=y"))
    };
    let mut states: Vec<bool> = Vec::new();
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut words = line.split_whitespace();
        let directive = words.next().unwrap_or_default();
        let is_directive = directive.starts_with('#');
        match (directive, words.next()) {
            ("#ifdef", Some(name)) => states.push(is_set(name)),
            ("#ifndef", Some(name)) => states.push(!is_set(name)),
            ("#if", _) => states.push(false),
            ("#else", _) => {
                if let Some(last) = states.last_mut() {
                    *last = !*last;
                }
            }
            ("#endif", _) => drop(states.pop()),
            _ => {}
        }
        if is_directive || states.contains(&false) {
            plain.extend(line.chars().map(|c| if c.is_ascii() && c != '\n' { ' ' } else { c }));
        } else {
            plain.push_str(line);
        }
    }
    plain
}

/// Finds a name as a whole word.
fn words(text: &[u8], name: &str) -> Vec<usize> {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let found = text.windows(name.len()).enumerate().filter(|(start, window)| {
        *window == name.as_bytes()
            && !is_word(start.checked_sub(1).and_then(|before| text.get(before)))
            && !is_word(text.get(start + name.len()))
    });
    found.map(|(start, _)| start).collect()
}

/// Returns the parentheses that follow directly.
fn arguments(text: &[u8], from: usize) -> Option<(usize, usize)> {
    if text.get(from) != Some(&b'(') {
        return None;
    }
    let mut depth = 0_usize;
    for (index, byte) in text.iter().enumerate().skip(from) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some((from, index)),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn blank(bytes: &mut [u8], start: usize, end: usize) {
    for byte in &mut bytes[start..end] {
        if byte.is_ascii() && *byte != b'\n' {
            *byte = b' ';
        }
    }
}
