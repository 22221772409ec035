//! Tests with lines and reports of real kernels. `data/lines-linux` and `data/lines-netbsd` have lines
//! of consoles, each after the kind of complaint that it is. The other files are consoles from the
//! first line of a report on, without some of the lines. Those named `uml` come from linux-uml, and
//! those named `fuzz` from a kernel with the checkers and frame pointers of linux-uml-fuzz.

use super::*;

/// The kind of complaint whose form a line has.
fn form(line: &str, system: System) -> Option<TroubleKind> {
    row(message(line), system).map(|(_, kind)| *kind)
}

/// Each line is recognized as its kind, and each row of the tables recognizes a line. Lines come from
/// consoles and from kernel sources.
#[test]
fn lines_have_forms() {
    for (system, table, lines) in [
        (System::Linux, linux::COMPLAINTS, include_str!("data/lines-linux")),
        (System::NetBsd, netbsd::COMPLAINTS, include_str!("data/lines-netbsd")),
    ] {
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

/// The names of the consoles, each with the kind, the title and the group of its only report. Those
/// named `made` were written by hand after the kernel's format strings.
const CONSOLES: &str = include_str!("data/consoles");

/// The name and the text of a console, and the kind, the title and the group of its report.
fn consoles() -> Vec<(&'static str, String, [&'static str; 3])> {
    let lines: Vec<_> = CONSOLES.lines().map(str::trim).collect();
    let row = |row: &[&'static str]| {
        let (name, kind) = row[0].split_once(' ').expect("two words");
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/console/data/").to_owned() + name;
        (name, std::fs::read_to_string(file).expect(name), [kind, row[1], row[2]])
    };
    lines.chunks_exact(3).map(row).collect()
}

#[test]
fn real_reports_are_whole_and_have_a_title_and_a_group() {
    for (name, console, report) in consoles() {
        // As it is, and with the prefixes that the kernel may add to its lines.
        let stamped: String =
            console.lines().map(|line| format!("[    1.203456][   T42] {line}\n")).collect();
        for console in [console, stamped] {
            let found = read(&console);
            let [one] = found.as_slice() else { panic!("{name}: {found:?}") };
            let told = [format!("{:?}", one.kind), one.title(), one.group()];
            assert_eq!(told, report, "{name}");
            assert_eq!(one.text, console.lines().map(str::trim_end).collect::<Vec<_>>(), "{name}");
        }
    }
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
    let both = format!("{}text\n{}", all[0].1, all[2].1);
    let groups: Vec<_> = read(&both).iter().map(Complaint::group).collect();
    assert_eq!(groups, [all[0].2[2], all[2].2[2]]);
}
