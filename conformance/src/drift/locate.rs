//! Looking for the claims' places.

use super::{collapse, pieces};
use crate::claims::Claim;
use std::collections::HashMap;
use std::{fmt, io};

/// One thing that has drifted.
#[derive(Debug, PartialEq, Eq)]
pub enum Drift {
    /// A claim's words are not in its source any more.
    Gone {
        /// The claim.
        id: String,
        /// The words.
        words: String,
        /// The source.
        file: String,
    },
    /// A claim's source cannot be read.
    Unreadable {
        /// The source.
        file: String,
        /// Why.
        why: String,
    },
    /// No claim is about a piece of the document.
    Unclaimed {
        /// The document.
        file: String,
        /// The line that the piece begins in.
        line: usize,
        /// Its first words.
        start: String,
    },
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Drift::Gone { id, words, file } => write!(f, "gone: {id}: {words:?} is not in {file}"),
            Drift::Unreadable { file, why } => write!(f, "gone: {file}: {why}"),
            Drift::Unclaimed { file, line, start } => {
                write!(f, "unclaimed: {file}:{line}: {start:?}")
            }
        }
    }
}

/// Compares claims with the sources that `read` gives, and the document with the claims.
pub fn compare(
    claims: &[&Claim],
    read: &dyn Fn(&str) -> io::Result<String>,
    file: &str,
    document: &str,
) -> Vec<Drift> {
    let mut drifts = Vec::new();
    let mut sources: HashMap<&str, Option<String>> = HashMap::new();
    for claim in claims {
        let source = sources.entry(&claim.source).or_insert_with(|| match read(&claim.source) {
            Ok(text) => Some(collapse(&text)),
            Err(error) => {
                let (file, why) = (claim.source.clone(), error.to_string());
                drifts.push(Drift::Unreadable { file, why });
                None
            }
        });
        let Some(text) = source else { continue };
        let mut gone = |words: &str| {
            let (id, file) = (claim.id.clone(), claim.source.clone());
            drifts.push(Drift::Gone { id, words: words.to_owned(), file });
        };
        if !claim.locators().any(|words| text.contains(words)) {
            gone(&claim.locator);
        }
        // Headings have changed their case.
        if !text.to_lowercase().contains(&claim.section.to_lowercase()) {
            gone(&claim.section);
        }
    }
    let about: Vec<&Claim> = claims.iter().copied().filter(|claim| claim.source == file).collect();
    for piece in pieces(document) {
        let claimed = |claim: &&Claim| claim.locators().any(|words| piece.text.contains(words));
        if !about.iter().any(claimed) {
            let start = piece.text.split(' ').take(8).collect::<Vec<_>>().join(" ");
            drifts.push(Drift::Unclaimed { file: file.to_owned(), line: piece.line, start });
        }
    }
    drifts
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::claims::{Claim, parse};
    use std::io;

    const DOCUMENT: &str = "\
Sheep
=====

The device counts sheep. It forgets
them at night.

.. code-block:: c

    /* Open the gate. */
    open();
";

    fn claims() -> Vec<Claim> {
        let claim = |id: &str, source: &str, locator: &str| {
            format!(
                "[[claim]]\nid = 'a.{id}'\ntext = 'T.'\nauthority = 'document'\n\
                 source = '{source}'\nsection = 'sheep'\nlocator = '{locator}'\n\
                 formerly = ['used to count']\nstatus = 'checked'\n"
            )
        };
        let text = [
            claim("counts", "d.rst", "device counts"),
            claim("night", "d.rst", "forgets them at night"),
            claim("gate", "d.rst", "Open the gate."),
            claim("driver", "d.c", "sheep++"),
        ];
        parse("fixture", &text.concat())
    }

    fn drifts(document: &str) -> Vec<String> {
        let read = |file: &str| match file {
            "d.rst" => Ok(document.to_owned()),
            "d.c" => Ok("void sheep(void) { sheep++; }".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let claims = claims();
        let claims: Vec<&Claim> = claims.iter().collect();
        compare(&claims, &read, "d.rst", document).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_as_it_was_has_not_drifted() {
        assert_eq!(drifts(DOCUMENT), [""; 0]);
        assert_eq!(drifts(&DOCUMENT.replace("device counts", "device used to count")), [""; 0]);
    }

    #[test]
    fn a_sentence_that_is_gone_is_missed() {
        let expected = ["gone: a.night: \"forgets them at night\" is not in d.rst"];
        assert_eq!(drifts(&DOCUMENT.replace(" It forgets\nthem at night.", "")), expected);
    }

    #[test]
    fn a_sentence_that_is_new_is_named() {
        let new = DOCUMENT.replace("sheep. It", "sheep. Goats, it\ncannot count. It");
        assert_eq!(drifts(&new), ["unclaimed: d.rst:4: \"Goats, it cannot count.\""]);
        let code = format!("{DOCUMENT}\n    shut();\n");
        assert_eq!(drifts(&code), ["unclaimed: d.rst:12: \"shut();\""]);
    }
}
