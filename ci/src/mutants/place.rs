//! Finds a place in a source file, in C or Rust.

use std::ops::Range;

/// Returns the places of the words in the functions of this name, or in the whole text. The words
/// follow each other with any white space in between, and are not parts of longer names.
pub fn find(text: &str, function: Option<&str>, words: &str) -> Vec<Range<usize>> {
    let within = match function {
        Some(name) => functions(text, name),
        None => std::iter::once(0..text.len()).collect(),
    };
    within.into_iter().flat_map(|range| find_in(text, &range, words)).collect()
}

/// Returns the places of the words in this part of the text.
pub fn find_in(text: &str, within: &Range<usize>, words: &str) -> Vec<Range<usize>> {
    let Some(first) = words.split_whitespace().next() else { return Vec::new() };
    let part = &text[within.clone()];
    let starts = part.match_indices(first).map(|(at, _)| within.start + at);
    let ends = starts.filter_map(|start| {
        let mut at = start;
        for (count, word) in words.split_whitespace().enumerate() {
            let rest = &text[at..within.end];
            let space = rest.len() - rest.trim_start().len();
            if (count > 0 && space == 0) || !rest[space..].starts_with(word) {
                return None;
            }
            at += space + word.len();
        }
        (!splits_name(text, start) && !splits_name(text, at)).then_some(start..at)
    });
    ends.collect()
}

/// Returns the functions of this name, each from its line to the closing brace, which has the same
/// indentation. In C, the line begins with a letter.
pub fn functions(text: &str, name: &str) -> Vec<Range<usize>> {
    let found = text.match_indices(name).filter_map(|(at, _)| {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = &text[line..at];
        let indent = &before[..before.len() - before.trim_start().len()];
        let is_name = !splits_name(text, at) && text[at + name.len()..].starts_with(['(', '<']);
        let is_c = text[line..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !is_name || !(is_c || before.ends_with("fn ")) {
            return None;
        }
        let body = at + text[at..].find([';', '{'])?;
        let end = text[body..].find(&format!("\n{indent}}}"))?;
        text[body..].starts_with('{').then_some(line..body + end + indent.len() + 2)
    });
    found.collect()
}

/// Whether a position is inside a name.
fn splits_name(text: &str, at: usize) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    is_word(text[..at].chars().next_back()) && is_word(text[at..].chars().next())
}
