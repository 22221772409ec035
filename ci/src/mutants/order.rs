//! Which checks come first: those that are likely to notice.

use super::record::{Entry, Outcome};
use super::trial::DECLARATION;

/// The checks that have noticed something, the likeliest for this function first.
pub fn killers(known: &[Entry], function: &str) -> Vec<String> {
    const MOST: usize = 30;
    let mut all: Vec<(&str, usize)> = Vec::new();
    for entry in known {
        let Outcome::Killed { by } = &entry.outcome else { continue };
        // One in the same function says more than any number elsewhere.
        let weight = if entry.function == function { 1000 } else { 1 };
        match all.iter_mut().find(|(id, _)| id == by) {
            Some((_, count)) => *count += weight,
            None if by != DECLARATION => all.push((by, weight)),
            None => {}
        }
    }
    all.sort_by_key(|&(id, count)| (std::cmp::Reverse(count), id));
    all.into_iter().take(MOST).map(|(id, _)| id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_own_come_first() {
        let entry = |function: &str, by: &str| Entry {
            id: String::new(),
            function: function.into(),
            line: 1,
            outcome: Outcome::Killed { by: by.into() },
        };
        let known = [entry("f", "a"), entry("f", "a"), entry("f", DECLARATION), entry("g", "b")];
        assert_eq!(killers(&known, "g"), ["b", "a"]);
        assert_eq!(killers(&known, "h"), ["a", "b"]);
    }
}
