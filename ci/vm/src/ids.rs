//! Selects checks by the ids, topics and patterns that the user names.

use crate::error::{Error, Result};
use crate::system::System;

/// Returns the selected ids in the suite's order. Each word must match at least one of the system's
/// ids.
pub fn select(
    words: &[String],
    known: &[String],
    suite: &str,
    system: System,
) -> Result<Vec<String>> {
    if let Some(word) = words.iter().find(|word| !known.iter().any(|id| matches(word, id))) {
        return Err(Error::usage(unknown_check(word, known, suite, system)));
    }
    Ok(known.iter().filter(|id| words.iter().any(|word| matches(word, id))).cloned().collect())
}

/// Whether a word selects a check: it is the id, the topic at the id's beginning, or a pattern in
/// which `*` matches any text.
pub fn matches(word: &str, id: &str) -> bool {
    let Some((first, rest)) = word.split_once('*') else {
        let rest = id.strip_prefix(word);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    };
    let Some(mut left) = id.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(last)
}

fn unknown_check(word: &str, known: &[String], suite: &str, system: System) -> String {
    let near: Vec<_> = known.iter().filter(|id| id.contains(word)).take(3).cloned().collect();
    let hint = if near.is_empty() {
        let (word, count) = (system.word(), known.len());
        format!("`{suite} list --system {word}` lists all {count}")
    } else {
        format!("similar: {}", near.join(", "))
    };
    let what = if word.contains('*') { "check matches" } else { "such check or topic" };
    format!("--check {word}: no {what} on {system}; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["open.twice", "enable.busy", "enable.twice.busy", "api.trace"];

    fn chosen(words: &[&str]) -> std::result::Result<Vec<String>, String> {
        let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        select(&owned(words), &owned(&KNOWN), "suite", System::Linux)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn ids_topics_and_patterns_mean_checks() {
        for (words, expected) in [
            (&["open.twice"][..], &[0][..]),
            (&["enable"], &[1, 2]),
            (&["enable.twice"], &[2]),
            (&["enable.*"], &[1, 2]),
            (&["*.busy"], &[1, 2]),
            (&["*twice*"], &[0, 2]),
            (&["e*e.*y"], &[1, 2]),
            (&["*"], &[0, 1, 2, 3]),
            (&["api", "open", "*.trace"], &[0, 3]),
            (&[], &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(|&index: &usize| KNOWN[index]).collect();
            assert_eq!(chosen(words).expect("all are known"), expected, "{words:?}");
        }
    }

    #[test]
    fn a_word_that_means_no_check_is_named() {
        for word in ["open.*e.twice", "open.twice*twice", "enable.twice.busy.*"] {
            let why = chosen(&["open", word]).expect_err("refused");
            assert!(
                why.starts_with(&format!("--check {word}: no check matches on Linux")),
                "{why}"
            );
        }
        // A part of a word is not a topic.
        let why = chosen(&["ena"]).expect_err("refused");
        assert!(why.ends_with("similar: enable.busy, enable.twice.busy"), "{why}");
        assert!(
            chosen(&["zzz"]).expect_err("refused").ends_with("list --system linux` lists all 4")
        );
    }
}
