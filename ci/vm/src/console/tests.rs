//! Forms of lines, and real reports: `data/` has consoles of guests, from the first line that
//! belongs to a report, with some lines left out: `uml` is linux-uml, and `fuzz` is a kernel with the
//! checkers and frame pointers of linux-uml-fuzz.

use super::*;

/// The kind of complaint whose form a line has.
pub fn form(line: &str, system: System) -> Option<TroubleKind> {
    row(message(line), system).map(|(_, kind)| *kind)
}

/// Asserts the kind of each line, and that each row of the table is needed for one of the lines.
#[track_caller]
pub fn assert_forms(system: System, table: &[Row], lines: &[(&str, TroubleKind)]) {
    for &(line, kind) in lines {
        assert_eq!(form(line, system), Some(kind), "{line}");
    }
    for (form, _) in table {
        let is_it = |line: &str| row(message(line), system).is_some_and(|r| r.0 == *form);
        assert!(lines.iter().any(|(line, _)| is_it(line)), "no line for `{form}`");
    }
}

fn read(console: &str) -> Vec<Complaint> {
    let lines: Vec<String> = console.lines().map(String::from).collect();
    complaints(&lines, System::Linux)
}

/// The consoles: each with the kind of its only report, and the report's title and group.
const CONSOLES: &str = "\
uml-refcount-add Warning
    WARNING in lkdtm_REFCOUNT_ADD_OVERFLOW at lib/refcount.c:22
    WARNING-in-lkdtm_REFCOUNT_ADD_OVERFLOW
uml-refcount-inc Warning
    WARNING in lkdtm_REFCOUNT_INC_OVERFLOW at lib/refcount.c:22
    WARNING-in-lkdtm_REFCOUNT_INC_OVERFLOW
uml-null Panic
    NULL pointer dereference in lkdtm_EXCEPTION
    NULL-pointer-dereference-in-lkdtm_EXCEPTION
uml-bug Oops
    kernel BUG in lkdtm_BUG at drivers/misc/lkdtm/bugs.c:132
    kernel-BUG-in-lkdtm_BUG
fuzz-order Lockdep
    possible circular locking dependency detected in probe_second
    possible-circular-locking-dependency-detected-in-probe_second-probe_first
fuzz-held Lockdep
    possible recursive locking detected in planted_write
    possible-recursive-locking-detected-in-planted_write
fuzz-one Warning
    WARNING in probe_check at drivers/misc/kcov-planted.c:207
    WARNING-in-probe_check-probe_caller_one
fuzz-uaf Sanitizer
    KASAN: slab-use-after-free Write in probe_freed
    KASAN-slab-use-after-free-Write-in-probe_freed-planted_write
fuzz-compare Panic
    NULL pointer dereference in strncmp
    NULL-pointer-dereference-in-strncmp
uml-panic Panic
    panic: dumptest
    panic-dumptest
";

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

/// Reports in the kernel's formats, for what no kernel at hand was made to say.
#[test]
fn the_innermost_functions_tell_causes_apart() {
    let cases = [
        (
            "=============================\nWARNING: suspicious RCU usage\n7.3.4 Not tainted\n\
             -----------------------------\na.c:7 suspicious rcu_dereference_check() usage!\n\n\
             1 lock held by prog/17:\n #0: 0000000060a1b2c8 (&a){+.+.}-{4:4}, at: first+0x1c/0x40\n\
             stack backtrace:\nCPU: 0 PID: 17 Comm: prog Not tainted 7.3.4\nCall Trace:\n \
             <TASK>\n dump_stack_lvl+0x7a/0x9a\n lockdep_rcu_suspicious+0x1/0x2\n \
             reader.isra.0+0x3/0x4\n </TASK>\n",
            "suspicious RCU usage in reader",
            "suspicious-RCU-usage-in-reader",
        ),
        (
            "BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
             #PF: supervisor read access in kernel mode\nOops: Oops: 0000 [#1] SMP KASAN\n\
             CPU: 0 UID: 0 PID: 17 Comm: prog Not tainted 7.3.4\nRIP: 0010:memcpy_orig+0x9/0x20\n\
             Call Trace:\n <TASK>\n ? stale+0x1/0x2\n copy_header+0x1/0x2 [mod]\n \
             do_syscall_64+0x1/0x2\n </TASK>\n---[ end trace 0000000000000000 ]---\n\
             Kernel panic - not syncing: Fatal exception\n",
            "kernel NULL pointer dereference in copy_header",
            "kernel-NULL-pointer-dereference-in-copy_header",
        ),
        (
            "------------[ cut here ]------------\nkernel BUG at mm/a.c:105!\n\
             Oops: invalid opcode: 0000 [#1] SMP\nRIP: 0010:f+0x9/0x20\nCall Trace:\n g+0x1/0x2\n",
            "kernel BUG in f at mm/a.c:105",
            "kernel-BUG-in-f-g",
        ),
        (
            "Unable to handle kernel NULL pointer dereference at virtual address 00000000\n\
             Mem abort info:\nInternal error: Oops: 0000000096000044 [#1] SMP\n\
             pc : f+0x9/0x20\nlr : g+0x1/0x2\nCall trace:\n f+0x9/0x20 (P)\n g+0x1/0x2\n \
             el0_svc+0x1/0x2\n",
            "Unable to handle kernel NULL pointer dereference in f",
            "Unable-to-handle-kernel-NULL-pointer-dereference-in-f-g",
        ),
    ];
    for (console, title, group) in cases {
        let found = read(console);
        let told: Vec<_> = found.iter().map(|one| (one.title(), one.group())).collect();
        assert_eq!(told, [(title.into(), group.into())], "{console}");
        assert_eq!(found[0].text.join("\n") + "\n", console);
    }
}

/// A splat that the kernel survives hides nothing: what it reports next is another complaint.
#[test]
fn each_complaint_is_one_of_its_own() {
    let all = consoles();
    let both = format!("{}text\n{}", all[0].1, all[2].1);
    let groups: Vec<_> = read(&both).iter().map(Complaint::group).collect();
    assert_eq!(groups, [all[0].2[2], all[2].2[2]]);
}
