//! Splits a reStructuredText document into pieces that a claim can cover.

/// A sentence, or the lines of a program between two comments or blank lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first line, from 1.
    pub line: usize,
    /// Its text in the form of locators: single blanks, no double backquotes.
    pub text: String,
}

/// The pieces of a document. Headings are none, because they promise nothing.
pub fn pieces(document: &str) -> Vec<Piece> {
    let lines: Vec<&str> = document.lines().collect();
    let mut pieces = Vec::new();
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut literal = false;
    for (index, &line) in lines.iter().enumerate() {
        let (number, blank) = (index + 1, line.trim().is_empty());
        if literal && !blank && !line.starts_with([' ', '\t']) {
            program(&std::mem::take(&mut block), &mut pieces);
            literal = false;
        }
        if literal {
            block.push((number, line));
        } else if blank {
            literal = block.last().is_some_and(|(_, last)| last.trim_end().ends_with("::"));
            prose(&std::mem::take(&mut block), &mut pieces);
        } else if is_rule(line) {
            // The line above an underline is a heading.
            block.pop();
        } else if line.starts_with(".. ") {
            literal = true;
        } else {
            block.push((number, line));
        }
    }
    if literal {
        program(&block, &mut pieces);
    } else {
        prose(&block, &mut pieces);
    }
    pieces
}

/// The text with single blanks, for comparison.
pub fn collapse(text: &str) -> String {
    text.replace("``", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_rule(line: &str) -> bool {
    let line = line.trim_end();
    let first = line.chars().next().unwrap_or(' ');
    line.len() > 2 && first.is_ascii_punctuation() && line.chars().all(|c| c == first)
}

/// The sentences of a block of text.
pub(super) fn prose(block: &[(usize, &str)], pieces: &mut Vec<Piece>) {
    let words: Vec<(usize, &str)> = block
        .iter()
        .flat_map(|&(number, line)| line.split_whitespace().map(move |word| (number, word)))
        .collect();
    let mut start = 0;
    for (index, &(_, word)) in words.iter().enumerate() {
        // A list number, or an abbreviation before a lower-case letter, does not end a sentence.
        let marker = index == start && word.trim_end_matches('.').parse::<u32>().is_ok();
        let next = words.get(index + 1).map(|(_, word)| word.trim_start_matches(['`', '"', '(']));
        let begins = next.is_none_or(|next| next.starts_with(|c: char| !c.is_lowercase()));
        if !marker && begins && word.trim_end_matches([')', '"']).ends_with(['.', ':']) {
            push(&words[start..=index], pieces);
            start = index + 1;
        }
    }
    push(&words[start..], pieces);
}

/// The parts of a program, each with the comment before it.
pub(super) fn program(block: &[(usize, &str)], pieces: &mut Vec<Piece>) {
    let mut piece: Vec<(usize, &str)> = Vec::new();
    for &(number, line) in block {
        if line.trim().is_empty() || line.trim_start().starts_with("/*") {
            push(&std::mem::take(&mut piece), pieces);
        }
        piece.push((number, line));
    }
    push(&piece, pieces);
}

fn push(parts: &[(usize, &str)], pieces: &mut Vec<Piece>) {
    let text = collapse(&parts.iter().map(|(_, part)| *part).collect::<Vec<_>>().join(" "));
    let first = parts.iter().find(|(_, part)| !part.trim().is_empty());
    // A bracket alone is not a piece.
    if let Some(&(line, _)) = first.filter(|_| text.contains(char::is_alphabetic)) {
        pieces.push(Piece { line, text });
    }
}

#[cfg(test)]
mod tests {
    use super::pieces;

    const DOCUMENT: &str = "\
A device
========

It counts sheep, in ``u64`` numbers (e.g. in
the field ``flock``). Each ``open`` begins
anew.

1. First there is one. Then
   there are two::

     # count

Like this:

.. code-block:: c

    int main(void)
    {
        /* Open it. */
        open();

        /*
         * And close.
         */
        close();
    }

That is all
";

    #[test]
    fn sentences_and_parts_of_programs() {
        let found: Vec<_> = pieces(DOCUMENT).into_iter().map(|p| (p.line, p.text)).collect();
        let expected = [
            (4, "It counts sheep, in u64 numbers (e.g. in the field flock)."),
            (5, "Each open begins anew."),
            (8, "1. First there is one."),
            (8, "Then there are two::"),
            (11, "# count"),
            (13, "Like this:"),
            (17, "int main(void) {"),
            (19, "/* Open it. */ open();"),
            (22, "/* * And close. */ close(); }"),
            (28, "That is all"),
        ];
        let expected: Vec<_> = expected.map(|(line, text)| (line, text.to_owned())).into();
        assert_eq!(found, expected);
    }
}
