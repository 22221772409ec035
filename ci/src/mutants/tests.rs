use super::mutant::all;
use super::record::{Entry, Outcome, Record};
use super::subject::{Equivalent, Subject};
use super::{page, plain};
use crate::programs::workspace;
use std::path::Path;

const TEXT: &str = "\
#define X 1
static notrace int f(struct s *s, int a)
\t__must_hold(&s->lock)
{
\tif (!a || s->n >= 2)
\t\treturn -EINVAL;
\ts->a = a;
\ts->b = 0;
\tguarded(
\t\tput(s, a);
\t);
#ifdef CONFIG_OFF
\tgone();
#else
\tthere();
#endif
\treturn 0;
}
int g(void)
{
\treturn 5;
}
";

fn subject() -> Subject {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    Subject {
        file: "kernel/f.c".into(),
        functions: words(&["f"]),
        others: words(&["g"]),
        errnos: words(&["EINVAL", "EBUSY"]),
        swaps: Vec::new(),
        attributes: words(&["notrace", "__must_hold"]),
        wrappers: words(&["guarded"]),
        equivalent: vec![Equivalent {
            reason: "nobody looks".into(),
            on: vec![],
            ids: words(&["f: x"]),
        }],
        missed: Vec::new(),
    }
}

#[test]
fn every_operator_has_its_places() {
    let mutants = all(TEXT, "CONFIG_ON=y\n", &subject()).expect("parsed");
    let ids: Vec<_> = mutants.iter().map(|mutant| mutant.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "f: negate: !a || s->n >= 2 => !(!a || s->n >= 2)",
            "f: boundary: s->n >= 2 => s->n > 2",
            "f: constant: 2 => 3",
            "f: delete: return -EINVAL;",
            "f: errno: -EINVAL => -EBUSY",
            "f: delete: s->a = a;",
            "f: stores: s->a = a; s->b = 0; => s->a = 0; s->b = a;",
            "f: delete: s->b = 0;",
            "f: constant: 0 => 1",
            "f: arguments: put(s, a) => put(a, s)",
            "f: delete: put(s, a);",
            "f: delete: there();",
            "f: constant: 0 => 1 (2)",
        ]
    );
    let lines = |text: &str| text.matches('\n').count();
    for mutant in &mutants {
        let altered = mutant.apply(TEXT);
        assert_ne!(altered, TEXT, "{}", mutant.id);
        assert_eq!(lines(&altered), lines(TEXT), "{}", mutant.id);
    }
    let applied = mutants[4].apply(TEXT);
    assert_eq!(applied, TEXT.replace("-EINVAL", "-EBUSY"));
}

#[test]
fn plain_text_keeps_its_places() {
    let text = plain::plain(TEXT, "CONFIG_OFF=y\n", &subject());
    assert_eq!(text.len(), TEXT.len());
    assert!(text.contains("gone()") && !text.contains("there()"));
    assert!(!text.contains("notrace") && !text.contains("lock") && !text.contains("guarded"));
    assert_eq!(text.find("put(s, a)"), TEXT.find("put(s, a)"));
}

#[test]
fn functions_are_all_known() {
    let mut other = subject();
    other.others.clear();
    assert!(all(TEXT, "", &other).expect_err("g is new").contains("`g`"));
    other.others = vec!["g".into()];
    other.functions.push("h".into());
    assert!(all(TEXT, "", &other).expect_err("h is gone").contains("`h`"));
}

#[test]
fn the_score_is_of_what_can_be_noticed() {
    let entry = |id: &str, outcome| Entry { id: id.into(), function: "f".into(), line: 1, outcome };
    let killed = || Outcome::Killed { by: "topic.check".into() };
    let mut record = Record {
        target: "t".into(),
        source: "s 1".into(),
        file: "kernel/f.c".into(),
        all: 6,
        mutants: vec![
            entry("f: a", killed()),
            entry("f: b", Outcome::Crashed { why: "the kernel panicked".into() }),
            entry("f: c", Outcome::SameCode),
            entry("f: d", Outcome::Invalid { why: "no".into() }),
            entry("f: e", Outcome::Survived),
            entry("f: x", Outcome::Survived),
        ],
    };
    let text = page::text(&record, &subject());
    assert!(text.contains("66.7 %"), "{text}");
    assert!(text.contains("SURVIVED f: e") && !text.contains("SURVIVED f: x"), "{text}");
    // What is called equivalent and noticed is not.
    record.mutants[5].outcome = killed();
    let text = page::text(&record, &subject());
    assert!(text.contains("NOT EQUIVALENT f: x"), "{text}");
    let again: Record = serde_json::from_str(&record.to_json()).expect("what was written");
    assert_eq!(page::render(&again, &subject()), page::render(&record, &subject()));
}

/// The page is that of the record and of what is called equivalent now.
#[test]
fn the_page_is_not_stale() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let subject = Subject::load(base, "kcov.toml", "linux-uml").expect("the data");
    let record = Record::read(&base.join("mutants/linux-uml.json")).expect("the record");
    let page = std::fs::read_to_string(workspace().join("docs/src/mutants.md")).expect("the page");
    let same = page == page::render(&record, &subject);
    assert!(same, "run `cargo vm mutants linux-uml --again ci/mutants/linux-uml.json` as it says");
    for id in subject.equivalent.iter().flat_map(|entry| &entry.ids) {
        let entry = record.mutants.iter().find(|entry| entry.id == *id);
        let outcome = entry.map(|entry| &entry.outcome);
        assert_eq!(outcome, Some(&Outcome::Survived), "`{id}` is called equivalent");
    }
    for entry in record.mutants.iter().filter(|entry| entry.outcome == Outcome::Survived) {
        let known = subject.equivalent(&entry.id).or(subject.missed(&entry.id));
        assert!(known.is_some(), "nothing is said of `{}`", entry.id);
    }
}
