use super::alteration::Alteration;
use super::library::Library;
use super::{is_usual, select};
use crate::cli::{Cli, Command, MutantsOptions};
use crate::workspace;
use clap::Parser as _;
use kcov_vm::target::Targets;
use std::collections::BTreeSet;

const TEXT: &str = "\
static int other(int a)
{
\tif (a)
\t\treturn -EINVAL;
}

static int f(struct s *s, int a);

static int f(struct s *s, int a)
\t__must_hold(&s->lock)
{
\tif (!a || s->n >= 2)
\t\treturn -EINVAL;
\ts->a = a;
\ts->b = 0;
\tif (s->b)
\t\treturn -EINVAL;
\treturn other(a);
}
";

/// Alters the text with this one edit.
fn altered(edit: &str) -> Result<String, String> {
    let file = format!("[[group]]\nfile = 'f.c'\n[[group.alteration]]\nname = 'x'\n{edit}\n");
    let all = Alteration::read(&file)?;
    all[0].apply(TEXT)
}

#[test]
fn an_edit_changes_one_place() {
    for (edit, old, new) in [
        ("delete = 's->b = 0;'", "\ts->b = 0;", "\t"),
        ("function = 'f'\nafter = 's->a = a;'\ntext = 'g();'", "s->a = a;", "s->a = a; g();"),
        ("before = 's->a = a;'\ntext = 'g();'", "s->a = a;", "g(); s->a = a;"),
        ("replace = 'n >= 2'\ntext = 'n > 2'", "n >= 2", "n > 2"),
        ("delete = 's->a ='\nto = 's->b = 0;'", "s->a = a;\n\ts->b = 0;", ""),
        ("delete = 's->a = a; s->b = 0;'", "s->a = a;\n\ts->b = 0;", ""),
        (
            "function = 'f'\nreplace = 'EINVAL'\nnth = 2\ntext = 'EBUSY'",
            "b)\n\t\treturn -EINVAL",
            "b)\n\t\treturn -EBUSY",
        ),
        (
            "function = 'other'\nreplace = 'EINVAL'\ntext = 'EBUSY'",
            "(a)\n\t\treturn -EINVAL",
            "(a)\n\t\treturn -EBUSY",
        ),
        (
            "function = 'f'\nedits = [{ delete = 's->b = 0;' }, \
             { before = 's->a = a;', text = 's->b = 0;' }]",
            "s->a = a;\n\ts->b = 0;",
            "s->b = 0; s->a = a;\n\t",
        ),
    ] {
        assert_eq!(altered(edit), Ok(TEXT.replacen(old, new, 1)), "{edit}");
        assert!(TEXT.contains(old), "{edit}");
    }
}

#[test]
fn an_edit_without_one_place_is_refused() {
    for (edit, why) in [
        ("delete = 's->c'", "0 times"),
        ("delete = 's->'", "5 times"),
        ("function = 'f'\ndelete = 'return'\nnth = 4", "3 times"),
        ("delete = 's->b = 0;'\nnth = 1", "1 times"),
        ("delete = 'EINV'", "0 times"),
        ("function = 'g'\ndelete = 'a'", "0 times"),
        ("delete = 's->b = 0;'\nto = 's->a'", "does not follow"),
        ("edits = [{ delete = 's->a = a;' }, { replace = 'a = a', text = 'b' }]", "overlap"),
        ("text = 'a'", "one of"),
        ("delete = 'a'\nreplace = 'b'", "one of"),
        ("delete = 'a b c d e f'\nto = 'g h i'", "9 words"),
        ("delete = 's->b = 0;'\ntoo = 's'", "unknown field"),
    ] {
        let error = altered(edit).expect_err(edit);
        assert!(error.contains(why), "{edit}: {error}");
    }
}

#[test]
fn functions_of_rust_end_at_their_own_brace() {
    let text =
        "impl A {\n    fn f(&self) {\n        a();\n    }\n    fn g() {\n        a();\n    }\n}\n";
    let edit =
        "[[group]]\nfile = 'a'\nalteration = [{ name = 'x', function = 'f', delete = 'a();' }]";
    let all = Alteration::read(edit).expect("an alteration");
    assert_eq!(all[0].apply(text), Ok(text.replacen("a();", "", 1)));
}

fn known() -> Targets {
    Targets::load(&workspace().join("ci/data/targets.toml")).expect("targets")
}

fn all() -> Vec<Alteration> {
    Alteration::all().expect("the data")
}

#[test]
fn alterations_are_of_targets_and_name_checks() {
    let targets = known();
    let mut names = BTreeSet::new();
    for one in all() {
        let name = &one.name;
        assert!(names.insert((one.on.clone(), name.clone())), "{name}: twice");
        assert!(targets.named(&one.on).is_ok(), "{name}: there is no target {}", one.on);
        assert!(!one.red.is_empty() || !one.ends.is_empty(), "{name}: name the checks");
    }
}

/// Every check has been seen to fail, if these alterations make their checks fail. NetBSD's own
/// checks are not part of this program.
#[test]
fn every_check_has_an_alteration() {
    let checks: BTreeSet<String> =
        kcov_conformance::checks::all().map(|check| check.id.to_owned()).collect();
    let (all, known) = (all(), known());
    let linux = || all.iter().filter(|one| one.on != "netbsd");
    // If the user names no target, the command still makes each check fail, except those of proposals.
    let is_tried =
        |one: &Alteration, id: &String| is_usual(one, &known) || id.contains("proposed.");
    let red: BTreeSet<&String> =
        linux().flat_map(|one| one.red.iter().filter(|id| is_tried(one, id))).collect();
    let named = linux().flat_map(|one| one.red.iter().chain(&one.ends));
    let unknown: Vec<_> = named.filter(|id| !checks.contains(*id)).collect();
    assert!(unknown.is_empty(), "no such checks: {unknown:?}");
    let never: Vec<_> = checks.iter().filter(|id| !red.contains(id)).collect();
    assert!(never.is_empty(), "no alteration makes these fail: {never:?}");
}

#[test]
fn alterations_of_the_library_apply() {
    let mut refused = Vec::new();
    for one in all().iter().filter(|one| one.is_of_library()) {
        let text = Library::original(&one.file).expect("the file");
        match one.apply(&text) {
            Ok(altered) => assert_ne!(altered, text, "{}", one.name),
            Err(why) => refused.push(format!("{} on {}: {why}", one.name, one.on)),
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

fn selected(words: &[&str]) -> kcov_vm::error::Result<Vec<String>> {
    let line = ["kcov-vm", "mutants"].iter().chain(words);
    let Command::Mutants(options) = Cli::parse_from(line).command else { panic!("another") };
    let options: &MutantsOptions = &options;
    let file = |on: &str| {
        format!(
            "[[group]]\non = '{on}'\nfile = 'f.c'\nalteration = [\n\
             {{ name = 'a count on {on}', delete = 'a', red = ['pc.a', 'open.b'] }},\n\
             {{ name = 'a size', delete = 'a', ends = ['race.c'] }}]"
        )
    };
    let all =
        ["linux-uml", "linux-7", "netbsd"].map(|on| Alteration::read(&file(on)).expect("read"));
    let chosen = select(all.concat(), options, &known())?;
    Ok(chosen.iter().map(|one| format!("{} {} {}", one.on, one.name, one.red.join(","))).collect())
}

#[test]
fn words_and_checks_select_alterations() {
    assert_eq!(selected(&[]).expect("all").len(), 4, "not NetBSD's");
    assert_eq!(selected(&["linux-7"]).expect("a target").len(), 2);
    assert_eq!(selected(&["netbsd", "size"]).expect("a target"), ["netbsd a size "]);
    assert_eq!(
        selected(&["on linux-7", "--check", "pc"]).expect("words"),
        ["linux-7 a count on linux-7 pc.a"]
    );
    assert_eq!(selected(&["--check", "race.*"]).expect("a pattern").len(), 2);
    for words in [&["nothing"][..], &["--check", "cmp"], &["linux-7", "on linux-uml"]] {
        assert_eq!(selected(words).expect_err("refused").status(), 2, "{words:?}");
    }
}
