//! What the console says about a guest's death, and which deaths are alike.

use crate::console::{complaints, place, slug, words};
use crate::system::System;
use object::{Object as _, ObjectSymbol as _};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// How a guest died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The name of the group of deaths that are alike; a good name for a directory.
    pub group: String,
    /// The first complaint, or else the runner's words.
    pub title: String,
    /// The kernel's reports, the first one first, or else the console. If the kernel's file has
    /// source lines, so have they, and a line for each function that the compiler put into another
    /// comes before that one.
    pub text: String,
}

impl Report {
    /// Cuts the reports out of the console. `why` is how the runner saw the death.
    pub fn new(console: &[String], system: System, why: &str, vmlinux: &Path) -> Report {
        let mut complaints = complaints(console, system);
        let Some(first) = complaints.first_mut() else {
            let group = slug(&words(why));
            return Report { group, title: why.into(), text: console.join("\n") + "\n" };
        };
        let (text, inlined) = explained(&first.text, vmlinux);
        first.inlined = inlined;
        let (group, title) = (first.group(), first.title());
        let texts = complaints[1..].iter().map(|complaint| explained(&complaint.text, vmlinux).0);
        let texts: Vec<_> = std::iter::once(text).chain(texts).collect();
        Report { group, title, text: texts.join("\n") }
    }
}

/// The lines with what the kernel's file says of them, and the functions that were inlined at each
/// place.
fn explained(lines: &[String], vmlinux: &Path) -> (String, BTreeMap<String, Vec<String>>) {
    let offsets: Vec<_> = lines.iter().map(|line| offset(line)).collect();
    let places = places(vmlinux, &offsets).unwrap_or_default();
    let (mut text, mut all) = (String::new(), BTreeMap::new());
    for (at, line) in lines.iter().enumerate() {
        let (last, inlined) = places.get(at).and_then(|p| p.split_last()).unzip();
        let inlined = inlined.unwrap_or_default();
        for (function, place) in inlined {
            text += &format!("     {function} {place} [inline]\n");
        }
        let source = last.map_or(String::new(), |(_, place)| format!(" {place}"));
        text += &format!("{line}{source}\n");
        let inlined = without_helpers(inlined);
        if let Some(place) = place(line).filter(|_| !inlined.is_empty()) {
            all.insert(place.to_owned(), inlined);
        }
    }
    (text, all)
}

/// Leaves out the inlined functions that headers define, because they only help their callers.
fn without_helpers(inlined: &[(String, String)]) -> Vec<String> {
    let own = inlined.iter().filter(|(_, place)| !place.contains(".h:"));
    own.map(|(name, _)| name.clone()).collect()
}

/// A place in a function: its name, the offset, and the function's size.
type Offset<'a> = (&'a str, u64, u64);

/// The place that a line of a report names, `f+0x1/0x2`. Stacks, the lock validator and sanitizers show
/// return addresses, so one byte less is inside the call.
fn offset(line: &str) -> Option<Offset<'_>> {
    let (name, rest) = place(line)?.split_once("+0x")?;
    let (offset, size) = rest.split_once("/0x")?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let is_call = line.starts_with(' ') || line.contains(", at: ") || line.starts_with("BUG: K");
    Some((name, number(offset)?.saturating_sub(u64::from(is_call)), number(size)?))
}

/// The functions and source lines of each place: those that were inlined, the innermost first, and
/// the function itself. binutils are there, because the kernel was built with them; a user's own
/// kernel may have no debug information.
fn places(vmlinux: &Path, offsets: &[Option<Offset<'_>>]) -> Option<Vec<Vec<(String, String)>>> {
    let bytes = fs::read(vmlinux).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    // Several static functions may have one name. The kernel's sizes include the padding.
    let find = |&(name, offset, size): &Offset<'_>| {
        let mut all = file.symbols().filter(|symbol| symbol.name() == Ok(name));
        let found = all.find(|symbol| (size.saturating_sub(63)..=size).contains(&symbol.size()));
        found.map(|symbol| symbol.address() + offset)
    };
    let addresses: Vec<_> = offsets.iter().map(|offset| offset.as_ref().and_then(find)).collect();
    let words = addresses.iter().flatten().map(|address| format!("{address:#x}"));
    let output = Command::new("addr2line").args(["-afie".as_ref(), vmlinux]).args(words).output();
    let output = format!("\n{}", String::from_utf8(output.ok()?.stdout).ok()?);
    let mut blocks = output.split("\n0x").skip(1).map(|block| {
        let lines: Vec<_> = block.lines().skip(1).collect();
        let known = |pair: &[&str]| {
            let place = pair[1].split(" (").next().filter(|place| !place.contains('?'))?;
            Some((pair[0].to_owned(), place.to_owned()))
        };
        lines.chunks_exact(2).filter_map(known).collect()
    });
    let places = addresses.iter().map(|address| address.and_then(|_| blocks.next()));
    Some(places.map(Option::unwrap_or_default).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_complaint_names_the_group_and_all_are_kept() {
        let warning = "WARNING: a.c:7 at f+0x1/0x2, CPU#0: p/18\nCPU: 0 UID: 0 PID: 18\n";
        let text = format!(
            "Run /init\n{warning}---[ end trace 0 ]---\nlater\nKernel panic - not syncing: x"
        );
        let lines: Vec<_> = text.lines().map(String::from).collect();
        let new = |lines: &[String], why| Report::new(lines, System::Linux, why, Path::new(""));
        let found = new(&lines, "it went down");
        assert_eq!((&*found.group, &*found.title), ("WARNING-in-f-7", "WARNING in f at a.c:7"));
        assert_eq!(found.text, format!("{warning}---[ end trace 0 ]---\n\n{}\n", lines[5]));
        let found = new(&lines[..1], "the guest hung: it used 20 s");
        assert_eq!((&*found.group, &*found.text), ("the-guest-hung-it-used-s", "Run /init\n"));
    }

    #[test]
    fn places_get_lines_if_there_are_any() {
        let own = std::env::current_exe().unwrap();
        let bytes = fs::read(&own).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let all = file.symbols().filter(|symbol| symbol.size() > 0);
        let named = all.filter(|s| s.name().is_ok_and(|name| name.contains("places_get_lines")));
        let line =
            |s: object::Symbol| format!("RIP: 0010:{}+0x0/{:#x}", s.name().unwrap(), s.size());
        let lines: Vec<_> = named.map(line).collect();
        let (text, inlined) = explained(&lines, Path::new("/no such file"));
        assert_eq!((text, inlined.len()), (lines.join("\n") + "\n", 0));
        // Some may be standard library functions whose names contain a closure of this test.
        let (text, _) = explained(&lines, &own);
        let is_own = |line: &str| line.starts_with("RIP: ") && line.contains("report.rs:");
        assert!(text.lines().any(is_own), "{text}");
    }

    #[test]
    fn calls_are_before_their_return_addresses_and_headers_are_helpers() {
        let lines =
            ["BUG: KASAN: x in f+0x9/0x20", " #0: 0a (&a), at: f+0x9/0x20", "RIP: 0010:f+0x9/0x20"];
        assert_eq!(lines.map(|line| offset(line).unwrap().1), [8, 8, 9]);
        let inlined = [("list_empty", "include/linux/list.h:381"), ("drain", "ipc/mqueue.c:9")];
        let inlined = inlined.map(|(name, place)| (name.into(), place.into()));
        assert_eq!(without_helpers(&inlined), ["drain"]);
    }
}
