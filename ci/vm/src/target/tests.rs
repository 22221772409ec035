//! Good and bad lists of targets.

use super::*;

fn here() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data"))
}

const GOOD: &str = r#"
        [[target]]
        name = "a"
        kind = "uml"
        package = "linux-source-7"
        suite = "s"
        config = ["common.config"]
        release = "7."
        memory = 256
        boot-limit = 5
        program-limit = 5
        default = true
    "#;

fn error(text: &str) -> String {
    Targets::parse(text, here()).expect_err("must not be accepted")
}

#[test]
fn our_own_file_is_valid() {
    let targets = Targets::load(&here().join("targets.toml")).expect("valid");
    for (host, expected) in [("x86_64", "linux-uml"), ("arm64", "linux-7-arm64")] {
        let defaults = targets.defaults(Arch::named(host).expect("known"));
        assert_eq!(defaults.iter().map(|it| &it.name).collect::<Vec<_>>(), [expected]);
    }
    let only = Targets::parse(GOOD, here()).expect("valid");
    assert_eq!(only.defaults(Arch::named("arm64").expect("known"))[0].name, "a");
    let message = only.select(&["b".into()]).expect_err("unknown").to_string();
    assert_eq!(message, "no target `b`; there are: a");
}

#[test]
fn errors_name_the_target_and_the_key() {
    assert!(Targets::parse(GOOD, here()).is_ok());
    for (from, to, key) in [
        ("kind = \"uml\"", "kind = \"vax\"", "kind"),
        ("kind = \"uml\"", "", "kind"),
        ("memory = 256", "memory = \"lots\"", "memory"),
        ("memory = 256", "memory = 0", "memory"),
        ("memory = 256", "memory = 256\nsmp = 0", "smp"),
        ("memory = 256", "memory = 256\ncolour = 1", "colour"),
        ("memory = 256", "memory = 256\nuserland = \"vax\"", "userland"),
        ("boot-limit = 5", "boot-limit = 0", "boot-limit"),
        ("\"common.config\"", "\"none.config\"", "config"),
        ("[\"common.config\"]", "[]", "config"),
        ("release = \"7.\"", "release = \"\"", "release"),
        ("suite = \"s\"", "", "suite"),
        ("memory = 256", "memory = 256\npatches = [\"x\"]", "patches"),
        ("memory = 256", "memory = 256\ncompiler = \"c d\"", "compiler"),
        ("memory = 256", "memory = 256\ncalls = { of = \"f\", word = \"x\" }", "calls"),
        ("memory = 256", "memory = 256\ndeclares = [\"x y\"]", "declares"),
        ("kind = \"uml\"", "kind = \"netbsd\"", "package"),
    ] {
        let message = error(&GOOD.replace(from, to));
        assert!(message.contains("target `a`"), "{message}");
        assert!(message.contains(&format!("`{key}`")), "{key}: {message}");
    }
}

#[test]
fn a_list_extends_another() {
    let place = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
        fs::write(path, text).expect("a file");
    };
    for name in ["one/configs/common.config", "one/configs/own.config", "two/configs/own.config"] {
        write(name, "");
    }
    write("one/targets.toml", &format!("suite = 's'\n{GOOD}"));
    write("one/targets.lock", "");
    let second = "[[target]]\nname = 'b'\nlike = 'a'\nconfig = { add = ['own.config'] }\n";
    let (one, two) = (place.path().join("one"), place.path().join("two"));
    let text = format!("extends = '../one/targets.toml'\n{second}");
    let targets = Targets::parse(&text, &two).expect("valid");
    let names: Vec<_> = targets.all.iter().map(|target| &*target.name).collect();
    assert_eq!((names, &*targets.suite), (vec!["a", "b"], "s"));
    // Its own fragment wins, and the other's are found.
    let base = two.join("../one");
    let found = ["common.config"].map(|name| base.join("configs").join(name)).to_vec();
    assert_eq!(targets.all[1].config, [found, vec![two.join("configs/own.config")]].concat());
    assert_eq!(targets.base, base);
    let message = Targets::parse(&format!("extends = 'none.toml'\n{second}"), &two);
    assert!(message.expect_err("refused").starts_with("key `extends`: "));
    write("one/targets.toml", &text);
    let message = Targets::parse(&text, &one).expect_err("extends what extends");
    assert!(message.contains("unknown key `extends`"), "{message}");
}

#[test]
fn the_file_as_a_whole_is_checked() {
    assert!(error("").contains("no [[target]]"));
    assert!(error(&format!("x = 1\n{GOOD}")).contains("`x`"));
    assert!(error(&format!("{GOOD}{GOOD}")).contains("another target has it"));
    assert!(error(&GOOD.replace("default = true", "")).contains("`default`"));
    assert!(error(&GOOD.replace("name = \"a\"", "")).contains("target number 1"));
}
