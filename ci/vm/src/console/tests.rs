//! Tests with lines and reports of real kernels. `reports.txt` has two sections of lines, each after
//! the kind of complaint that it is. Each other section is a console from the first line of its only
//! report on, without some of the lines, after the report's kind, title and group. Those named `uml`
//! come from linux-uml, those named `fuzz` from a kernel with the checkers and frame pointers of
//! linux-uml-fuzz, and those named `made` were written by hand after the kernel's format strings.

use super::*;

/// The kind of complaint whose form a line has.
fn form(line: &str, system: System) -> Option<TroubleKind> {
    row(message(line), system).map(|(_, kind)| *kind)
}

/// The first lines and the texts of the sections.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = include_str!("reports.txt").trim_start_matches("== ").trim_end_matches('\n');
    text.split("\n== ").filter_map(|section| section.split_once('\n'))
}

/// Each line is recognized as its kind, and each row of the tables recognizes a line. Lines come from
/// consoles and from kernel sources.
#[test]
fn lines_have_forms() {
    for (system, table, name) in [
        (System::Linux, linux::COMPLAINTS, "lines-linux"),
        (System::NetBsd, netbsd::COMPLAINTS, "lines-netbsd"),
    ] {
        let (_, lines) = sections().find(|section| section.0 == name).expect(name);
        let lines = || lines.lines().filter_map(|line| line.split_once(' '));
        for (kind, line) in lines().filter(|(kind, _)| *kind != "#") {
            let found = form(line, system).map_or("None".into(), |kind| format!("{kind:?}"));
            assert_eq!(found, kind, "{line}");
        }
        for (form, _) in table {
            let is_it = |line: &str| row(message(line), system).is_some_and(|r| r.0 == *form);
            assert!(lines().any(|(_, line)| is_it(line)), "no line for `{form}`");
        }
    }
}

fn read(console: &str) -> Vec<Complaint> {
    let lines: Vec<String> = console.lines().map(String::from).collect();
    complaints(&lines, System::Linux)
}

/// The name and the text of each console, and the kind, the title and the group of its report.
fn consoles() -> Vec<(&'static str, &'static str, [&'static str; 3])> {
    let console = |(first, text): (&'static str, &'static str)| {
        let (name, kind) = first.split_once(' ')?;
        let (title, text) = text.split_once('\n')?;
        let (group, console) = text.split_once('\n')?;
        Some((name, console, [kind, title, group]))
    };
    sections().filter_map(console).collect()
}

#[test]
fn real_reports_are_whole_and_have_a_title_and_a_group() {
    for (name, console, report) in consoles() {
        // As it is, and with the prefixes that the kernel may add to its lines.
        let stamped: String =
            console.lines().map(|line| format!("[    1.203456][   T42] {line}\n")).collect();
        for console in [console, &stamped] {
            let found = read(console);
            let [one] = found.as_slice() else { panic!("{name}: {found:?}") };
            let told = [format!("{:?}", one.kind), one.title(), one.group()];
            assert_eq!(told, report, "{name}");
            assert_eq!(one.text, console.lines().map(str::trim_end).collect::<Vec<_>>(), "{name}");
        }
    }
}

/// The functions that the compiler put into another tell causes apart, too.
#[test]
fn inlined_functions_are_frames() {
    let text = "WARNING: a.c:7 at check+0x8/0x90, CPU#0: p/18\nCall Trace:\n \
                [<6000>] check+0x8/0x90\n [<6010>] entry+0x40/0x50\n [<6020>] last+0x1/0x2\n";
    let mut one = read(text).remove(0);
    assert_eq!(one.functions(), ["check", "entry"]);
    one.inlined.insert("entry+0x40/0x50".into(), vec!["second".into(), "first".into()]);
    assert_eq!(one.group(), "WARNING-in-check-second-7");
    one.inlined.insert("check+0x8/0x90".into(), vec!["test".into()]);
    assert_eq!(one.functions(), ["test", "check"]);
    assert_eq!(one.title(), "WARNING in test at a.c:7");
}

#[test]
fn one_first_line_may_have_two_causes() {
    let [(_, add, _), (_, inc, _), ..] = &consoles()[..] else { panic!("too few") };
    let [add, inc] = [add, inc].map(|console| read(console).remove(0));
    assert_eq!(add.line, inc.line);
    assert_ne!(add.group(), inc.group());
}

/// Messages of drivers, and lines that programs wrote to /dev/kmsg.
#[test]
fn text_is_no_report() {
    let texts = [
        "=======================================================",
        "WARNING: The mand mount option has been deprecated and",
        "         and is ignored by this kernel. Remove the mand",
        "------------[ cut here ]------------",
        "BUG: from user",
        "Oops: soft lockup",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [prog:17]",
        "WARNING: possible circular locking dependency detected",
        "INFO: task prog:17 blocked for more than 30 seconds.",
        "Kernel panic - not syncing: not really",
    ];
    let mut reader = Reader::new(System::Linux);
    for text in texts {
        assert_eq!(reader.line(text), None, "{text}");
    }
    reader.lives();
    for line in 0..2 * KEPT {
        assert_eq!(reader.line(&format!("line {line}")), None);
    }
    assert_eq!(reader.finish(true), []);
    // A report after them is found, without them.
    let (_, console, _) = consoles().remove(0);
    let found = read(&format!("{}\n{console}", texts.join("\n")));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].text.len(), console.lines().count());
}

/// A splat that the kernel survives hides nothing: what it reports next is another complaint.
#[test]
fn each_complaint_is_one_of_its_own() {
    let all = consoles();
    let both = format!("{}\ntext\n{}", all[0].1, all[2].1);
    let groups: Vec<_> = read(&both).iter().map(Complaint::group).collect();
    assert_eq!(groups, [all[0].2[2], all[2].2[2]]);
}
