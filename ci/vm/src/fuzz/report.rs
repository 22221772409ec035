//! What the console says about a guest's death, and which deaths are alike.

use crate::console::{TroubleKind, classify};
use crate::system::System;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Functions that report the trouble of their callers.
const REPORTERS: &[&str] = &[
    "__might_resched",
    "__warn",
    "check_panic_on_warn",
    "dump_stack",
    "end_report",
    "fortify_panic",
    "kasan_",
    "panic",
    "print_report",
    "report_bug",
    "show_stack",
    "ubsan_epilogue",
    "vpanic",
    "warn_slowpath",
    "__asan_",
    "__kasan_",
    "__sanitizer_",
    "__ubsan_",
    "_printk",
];

/// How a guest died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The name of the group of deaths that are alike; a good name for a directory.
    pub group: String,
    /// The first complaint, or else the runner's words.
    pub title: String,
    /// The console from there on.
    pub lines: Vec<String>,
}

impl Report {
    /// Cuts the report out of the console. `why` is how the runner saw the death.
    pub fn new(console: &[String], system: System, why: &str) -> Report {
        let first = console
            .iter()
            .enumerate()
            .find_map(|(at, line)| classify(line, system).map(|trouble| (at, trouble)));
        let Some((at, trouble)) = first else {
            let group = slug(&words(why));
            return Report { group, title: why.into(), lines: console.to_vec() };
        };
        let lines = console[at..].to_vec();
        let place = named(&trouble.line).or_else(|| lines.iter().find_map(|line| frame(line)));
        let what = match trouble.kind {
            TroubleKind::Panic | TroubleKind::Sanitizer => kind(&trouble.line),
            TroubleKind::Oops => "oops".into(),
            TroubleKind::Lockdep => kind(&trouble.line),
            TroubleKind::Hung => "hung".into(),
            TroubleKind::Memory => "out of memory".into(),
            _ => "warning".into(),
        };
        // The process that runs out of memory does so anywhere.
        let place = place.filter(|_| trouble.kind != TroubleKind::Memory);
        let group = slug(&place.map_or(what.clone(), |place| format!("{what} in {place}")));
        Report { group, title: trouble.line, lines }
    }

    /// The text, with source lines if the kernel's file has them.
    pub fn text(&self, vmlinux: &Path) -> String {
        let addresses: Vec<_> = self.lines.iter().filter_map(|line| address(line)).collect();
        let places = places(vmlinux, &addresses);
        let mut text = String::new();
        let mut places = places.iter();
        for line in &self.lines {
            let place = address(line).and_then(|_| places.next());
            let place = place.filter(|place| !place.is_empty());
            let place = place.map_or(String::new(), |place| format!(" {place}"));
            writeln!(text, "{line}{place}").expect("writing to a string cannot fail");
        }
        text
    }
}

/// The function that a complaint names: `… in f+0x1/0x2`, `… at f+0x1/0x2`.
fn named(line: &str) -> Option<String> {
    line.split_whitespace().find_map(function)
}

/// The function of a stack frame, unless it only reports.
fn frame(line: &str) -> Option<String> {
    let word = line.split_whitespace().last().filter(|_| line.starts_with([' ', 'R', 'p']))?;
    // Words on the stack that are pointers to functions are no return addresses.
    let name = function(word).filter(|_| !word.contains("+0x0/"))?;
    let reports = REPORTERS.iter().any(|reporter| name.starts_with(reporter));
    (!reports).then_some(name)
}

/// The name in `name+0x1/0x2`, without what the compiler appended.
fn function(word: &str) -> Option<String> {
    let (name, rest) = word.split_once("+0x")?;
    let name = name.rsplit(':').next().unwrap_or(name);
    let is_name = !name.is_empty() && rest.contains("/0x");
    is_name.then(|| name.split('.').next().unwrap_or(name).to_owned())
}

/// The kind of a complaint: its words without numbers, up to the place.
fn kind(line: &str) -> String {
    let end = line.find(" in ").or_else(|| line.find(" at ")).unwrap_or(line.len());
    words(&line[..end])
}

/// The words that have no digits.
fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words =
        words.filter(|word| !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit()));
    words.take(8).collect::<Vec<_>>().join(" ")
}

fn slug(text: &str) -> String {
    let text: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    text.chars().take(80).collect()
}

/// The address of a frame of User-Mode Linux, ` [<60012345>] ? f+0x1/0x2`.
fn address(line: &str) -> Option<&str> {
    let address = line.split_once("[<")?.1.split_once(">]")?.0;
    address.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(address)
}

/// The source lines of addresses, or nothing. binutils are there, because the kernel was built
/// with them; a user's own kernel may have no debug information.
fn places(vmlinux: &Path, addresses: &[&str]) -> Vec<String> {
    let output = Command::new("addr2line").arg("-e").arg(vmlinux).args(addresses).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| line.split(" (").next().unwrap_or(line));
    let known = |line: &str| if line.starts_with("??") { String::new() } else { line.to_owned() };
    let places: Vec<_> = lines.map(known).collect();
    if places.len() == addresses.len() { places } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(console: &str) -> Report {
        let lines: Vec<_> = console.lines().map(String::from).collect();
        Report::new(&lines, System::Linux, "the guest hung: it used 20 s")
    }

    #[test]
    fn the_report_begins_with_the_complaint() {
        let found = report("Run /init\nWARNING: a.c:7 at f+0x1/0x2, CPU#0: p/18\nCall Trace:\n");
        assert_eq!(found.group, "warning-in-f");
        assert_eq!(found.title, "WARNING: a.c:7 at f+0x1/0x2, CPU#0: p/18");
        assert_eq!(found.lines.len(), 2);
    }

    #[test]
    fn alike_deaths_have_one_group() {
        let cases = [
            (
                "BUG: KASAN: slab-out-of-bounds in f.isra.0+0x1/0x2",
                "BUG-KASAN-slab-out-of-bounds-in-f",
            ),
            (
                "Kernel panic - not syncing: Kernel mode fault at addr 0x8, ip 0x6032cac0\n\
                 Call Trace:\n [<6005c240>] ? show_stack+0x8/0xa0\n [<6005c2f0>] ? g+0x0/0xa0\n \
                 [<6039871f>] ? h+0x6f/0x80",
                "Kernel-panic-not-syncing-Kernel-mode-fault-in-h",
            ),
            ("Out of memory: Killed process 17 (prog) total-vm:4kB", "out-of-memory"),
            ("INFO: task prog:17 blocked for more than 30 seconds.", "hung"),
            (
                "BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
                 RIP: 0010:k+0x9/0x20",
                "oops-in-k",
            ),
            ("nothing of note", "the-guest-hung-it-used-s"),
        ];
        for (console, group) in cases {
            assert_eq!(report(console).group, group, "{console}");
        }
    }

    #[test]
    fn frames_get_lines_if_there_are_any() {
        let found = report("WARNING: at f+0x1/0x2\n [<60012345>] ? f+0x6f/0x80");
        assert_eq!(found.text(Path::new("/no such file")), found.lines.join("\n") + "\n");
        // This program has debug information, or not; both are fine for lines that it lacks.
        let own = std::env::current_exe().unwrap();
        assert_eq!(found.text(&own).lines().count(), 2);
    }
}
