//! Selects checks by ids and topics.

use crate::check::Check;
use crate::checks;

/// The checks with these ids and topics, or all, in the suite's order.
pub(super) fn select(ids: &[String]) -> Result<Vec<&'static Check>, String> {
    let matches = |check: &Check, id: &str| {
        check.id.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for id in ids {
        if !checks::all().any(|check| matches(check, id)) {
            let near = near(id);
            let hint = if near.is_empty() { "see `list`".to_owned() } else { near.join(", ") };
            return Err(format!("no check {id:?}; near names: {hint}"));
        }
    }
    let wanted = |check: &&Check| ids.is_empty() || ids.iter().any(|id| matches(check, id));
    Ok(checks::all().filter(wanted).collect())
}

/// Up to three ids that are similar to a misspelt one.
fn near(id: &str) -> Vec<&'static str> {
    let mut all: Vec<_> = checks::all()
        .map(|check| (strsim::levenshtein(id, check.id), check.id))
        .filter(|(distance, known)| {
            distance * 3 <= id.len() || (id.len() > 3 && known.contains(id))
        })
        .collect();
    all.sort();
    all.into_iter().take(3).map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::{near, select};
    use crate::checks;

    #[test]
    fn an_unknown_id_is_answered_with_near_ones() {
        let first = checks::all().next().unwrap().id;
        let misspelt = first.replacen('e', "a", 1);
        assert!(near(&misspelt).contains(&first));
        let error = select(&[misspelt]).unwrap_err();
        assert!(error.contains(first) && !error.contains('\n'));
        assert!(select(&["x".to_owned()]).unwrap_err().contains("see `list`"));
    }

    #[test]
    fn a_topic_selects_its_checks_only() {
        let selected = select(&["enable".to_owned()]).unwrap();
        assert!(selected.len() > 1);
        assert!(selected.iter().all(|check| check.id.starts_with("enable.")));
        assert!(select(&["enab".to_owned()]).is_err());
    }
}
