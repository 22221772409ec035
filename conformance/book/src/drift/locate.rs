//! Compares claims with sources.

use super::document::{Piece, collapse};
use kcov_conformance::claims::Claim;
use std::collections::HashMap;
use std::io;

/// A document that the claims must cover.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Its path in the source tree.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Splits it into pieces.
    pub pieces: fn(&str) -> Vec<Piece>,
    /// Normalizes its text, or a locator, for comparison.
    pub normal: fn(&str) -> String,
}

/// Compares the claims with the document and other sources, which `read` returns, and the document
/// with the claims. Returns the differences in words.
pub fn compare(
    claims: &[&Claim],
    read: &dyn Fn(&str) -> io::Result<String>,
    document: Option<Document<'_>>,
) -> Vec<String> {
    let of_document = |file: &str| document.filter(|document| document.file == file);
    let mut drifts = Vec::new();
    let mut sources: HashMap<&str, Option<String>> = HashMap::new();
    for claim in claims {
        let document = of_document(&claim.source);
        let normal = document.map_or(collapse as fn(&str) -> String, |document| document.normal);
        let source = sources.entry(&claim.source).or_insert_with(|| {
            let text = document.map_or_else(|| read(&claim.source), |d| Ok(d.text.to_owned()));
            match text {
                Ok(text) => Some(normal(&text)),
                Err(error) => {
                    drifts.push(format!("gone: {}: {error}", claim.source));
                    None
                }
            }
        });
        let Some(text) = source else { continue };
        let mut gone = |words: &str| {
            drifts.push(format!("gone: {}: {words:?} is not in {}", claim.id, claim.source));
        };
        if !claim.locators().any(|words| text.contains(&normal(words))) {
            gone(&claim.locator);
        }
        // The case of headings differs between releases.
        if !text.to_lowercase().contains(&claim.section.to_lowercase()) {
            gone(&claim.section);
        }
    }
    let Some(Document { file, text, pieces, normal }) = document else { return drifts };
    let about = claims.iter().filter(|claim| claim.source == file);
    let locators: Vec<String> = about.flat_map(|claim| claim.locators()).map(normal).collect();
    for piece in pieces(text) {
        if !locators.iter().any(|words| piece.text.contains(words)) {
            let start = piece.text.split(' ').take(8).collect::<Vec<_>>().join(" ");
            drifts.push(format!("unclaimed: {file}:{}: {start:?}", piece.line));
        }
    }
    drifts
}

#[cfg(test)]
mod tests {
    use super::{Document, compare};
    use crate::drift::document::{collapse, pieces};
    use kcov_conformance::claims::{Claim, parse};
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
                "{{ id = 'a.{id}', at = ['{source}', 'sheep', '{locator}'], text = 'T.',\n\
                 formerly = ['used to count'] }},\n"
            )
        };
        let text = [
            "authority = 'document'\nsource = ''\nclaim = [\n".to_owned(),
            claim("counts", "d.rst", "device counts"),
            claim("night", "d.rst", "forgets them at night"),
            claim("gate", "d.rst", "Open the gate."),
            claim("driver", "d.c", "sheep++"),
            "]".to_owned(),
        ];
        parse("test", &text.concat())
    }

    fn drifts(document: &str) -> Vec<String> {
        let read = |file: &str| match file {
            "d.c" => Ok("void sheep(void) { sheep++; }".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let claims = claims();
        let claims: Vec<&Claim> = claims.iter().collect();
        let document = Document { file: "d.rst", text: document, pieces, normal: collapse };
        compare(&claims, &read, Some(document))
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
