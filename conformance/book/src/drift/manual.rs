//! Splits a manual page into pieces that a claim can cover.
//!
//! The input is the output of `man`, with headings at the margin and hyphenated words. mandoc first
//! formats mdoc source.

use super::document::{Piece, collapse, program, prose};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The formatted manual page in this file.
pub fn read(file: &Path) -> io::Result<String> {
    let text = super::read(file)?;
    let is_source = text.lines().any(|line| line.starts_with(".Sh "));
    let text = if is_source { print(file)? } else { text };
    let page = plain(&text);
    if sections(&page).next().is_none() {
        let why = format!("{}: no page of the manual, it has no headings", file.display());
        return Err(io::Error::other(why));
    }
    Ok(page)
}

/// Formats a page.
fn print(file: &Path) -> io::Result<String> {
    let mut mandoc = Command::new("mandoc");
    let output = mandoc.arg("-Tascii").arg(file).stdin(Stdio::null()).output();
    let output = output.map_err(|error| {
        let why = format!("mandoc has to be installed to print {}: {error}", file.display());
        io::Error::new(error.kind(), why)
    })?;
    // The exit status also reports style warnings.
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    if page.trim().is_empty() {
        let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Err(io::Error::other(format!("mandoc cannot print {}: {said}", file.display())));
    }
    Ok(page)
}

/// Removes the sequences for bold and underlined text.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // An overstruck character replaces the previous one.
            '\u{8}' => {
                plain.pop();
            }
            '\u{1b}' => {
                letters.find(|&c| c == 'm');
            }
            _ => plain.push(letter),
        }
    }
    plain
}

/// The pieces of a page. Headings are none, because they promise nothing.
pub fn pieces(page: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (heading, lines) in sections(page) {
        // The example starts with its includes and ends with its section.
        let is_code = |(_, line): &(usize, &str)| line.trim_start().starts_with("#include");
        let code = lines.iter().position(is_code).filter(|_| heading == "EXAMPLES");
        let (text, code) = lines.split_at(code.unwrap_or(lines.len()));
        for block in text.split(|(_, line)| line.trim().is_empty()) {
            block_of_prose(block, &mut pieces);
        }
        program(code, &mut pieces);
    }
    for piece in &mut pieces {
        piece.text = normal(&piece.text);
    }
    pieces
}

/// Normalizes text for comparison. It drops hyphens inside words, because at the end of a line they
/// are ambiguous.
pub fn normal(text: &str) -> String {
    let collapsed = collapse(text);
    let mut normal = String::with_capacity(collapsed.len());
    let mut rest = collapsed.as_str();
    while let Some((before, after)) = rest.split_once('-') {
        let next = after.strip_prefix(' ').unwrap_or(after);
        normal.push_str(before);
        if before.ends_with(char::is_alphabetic) && next.starts_with(char::is_alphabetic) {
            rest = next;
        } else {
            normal.push('-');
            rest = after;
        }
    }
    normal + rest
}

/// The sections of a page by heading, with numbered lines from 1. It skips the header and the
/// footer.
fn sections(page: &str) -> impl Iterator<Item = (&str, Vec<(usize, &str)>)> {
    let mut lines = page.lines().enumerate().map(|(index, line)| (index + 1, line)).peekable();
    let is_heading = |line: &str| {
        let letters = |c: char| c.is_ascii_uppercase() || c == ' ';
        line.starts_with(|c: char| c.is_ascii_uppercase()) && line.chars().all(letters)
    };
    while lines.next_if(|(_, line)| !is_heading(line)).is_some() {}
    std::iter::from_fn(move || {
        let (_, heading) = lines.next_if(|(_, line)| is_heading(line))?;
        let inside = |line: &str| line.is_empty() || line.starts_with([' ', '\t']);
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|(_, line)| inside(line)) {
            body.push(line);
        }
        Some((heading, body))
    })
}

/// A block between blank lines. An item with an indented explanation is one piece.
fn block_of_prose(block: &[(usize, &str)], pieces: &mut Vec<Piece>) {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut start = 0;
    for (index, pair) in block.windows(2).enumerate() {
        let (line, next) = (pair[0].1, pair[1].1);
        // The first line of a list item starts further left, with the number.
        let numbered = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        if indent(next) > indent(line) && !numbered {
            prose(&block[start..=index], pieces);
            start = index + 1;
        }
    }
    prose(&block[start..], pieces);
}

#[cfg(test)]
mod tests {
    use super::{normal, pieces, plain};

    const PAGE: &str = "\
Some server's words.

FLOCK(4)                 Kernel Interfaces Manual                 FLOCK(4)

NAME
     flock -- counts sheep

DESCRIPTION
     The driver counts sheep.  They are counted on a per-
     field basis and no-
     body sleeps.

     FLOCK_COUNT uint64_t *sheep
           Counts.  A sheep is counted as follows:

           1.   One leg, then
                the next.

FILES
     /dev/flock  Device node.

EXAMPLES
     Sheep are counted here.

     #include <flock.h>

     count();
     /* And again. */
     count();

System 1.0                   May 1, 2001                   System 1.0

Another page? No.
";

    #[test]
    fn sentences_tags_and_parts_of_programs() {
        let found: Vec<_> = pieces(PAGE).into_iter().map(|p| (p.line, p.text)).collect();
        let expected = [
            (6, "flock -- counts sheep"),
            (9, "The driver counts sheep."),
            (9, "They are counted on a perfield basis and nobody sleeps."),
            (13, "FLOCK_COUNT uint64_t *sheep"),
            (14, "Counts."),
            (14, "A sheep is counted as follows:"),
            (16, "1. One leg, then the next."),
            (20, "/dev/flock Device node."),
            (23, "Sheep are counted here."),
            (25, "#include <flock.h>"),
            (27, "count();"),
            (28, "/* And again. */ count();"),
        ];
        let expected: Vec<_> = expected.map(|(line, text)| (line, text.to_owned())).into();
        assert_eq!(found, expected);
    }

    #[test]
    fn broken_and_compound_words_compare_alike() {
        assert_eq!(
            normal("the ker- nel's compile-time -- 3-4 -x"),
            "the kernel's compiletime -- 3-4 -x"
        );
        assert_eq!(normal("compile- time"), normal("compile-time"));
    }

    #[test]
    fn what_is_for_terminals_is_left_out() {
        assert_eq!(plain("N\u{8}NA\u{8}A _\u{8}x \u{1b}[1mbold\u{1b}[0m"), "NA x bold");
    }
}
