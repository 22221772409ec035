//! The states of a device, and what leads from one to another: each step names its claims.

use super::registry::{self, System};
use super::svg::{Anchor, Svg};
use super::{MARK, WRITING, link, plain};
use std::fmt::Write as _;

/// A state: its name, what it means, and where it stands in the picture.
pub(super) struct State {
    name: &'static str,
    meaning: &'static str,
    class: &'static str,
    at: (i32, i32),
}

/// What leads from one state to another.
pub(super) struct Step {
    from: &'static str,
    to: &'static str,
    event: &'static str,
    claims: &'static [&'static str],
}

/// An arrow of the picture with its label.
pub(super) struct Arrow {
    points: &'static [(i32, i32)],
    at: (i32, i32),
    anchor: Anchor,
    label: &'static [&'static str],
}

/// One driver's machine.
pub(super) struct Machine {
    title: &'static str,
    system: System,
    height: i32,
    states: &'static [State],
    steps: &'static [Step],
    arrows: &'static [Arrow],
}

const BOX: (i32, i32) = (120, 44);
use Anchor::{End, Middle, Start};

pub(super) const LINUX: Machine = Machine {
    title: "States of a Linux device",
    system: registry::LINUX,
    height: 450,
    states: &[
        State { name: "unsized", meaning: "opened, without a buffer", class: "", at: (135, 44) },
        State {
            name: "sized",
            meaning: "has its buffer, may be mapped; no thread is traced into it",
            class: "one",
            at: (135, 164),
        },
        State {
            name: "enabled",
            meaning: "the thread that enabled is traced",
            class: "two",
            at: (20, 304),
        },
        State {
            name: "remote",
            meaning: "collects what runs in the name of its handles, for the thread that enabled",
            class: "three",
            at: (250, 304),
        },
        State {
            name: "closed",
            meaning: "enabled, without any descriptor: nobody can disable it, a mapping goes on to \
                      show the records",
            class: "none",
            at: (20, 396),
        },
    ],
    steps: &[
        Step {
            from: "",
            to: "unsized",
            event: "open(2)",
            claims: &["open.instances-are-independent"],
        },
        Step {
            from: "unsized",
            to: "sized",
            event: "`KCOV_INIT_TRACE`",
            claims: &["size.sets-the-buffer-size", "size.buffer-is-zeroed"],
        },
        Step {
            from: "unsized",
            to: "unsized",
            event: "a refused size",
            claims: &["size.refusal-leaves-device-unsized"],
        },
        Step {
            from: "sized",
            to: "enabled",
            event: "`KCOV_ENABLE`",
            claims: &["enable.current-thread", "map.not-needed-to-enable"],
        },
        Step {
            from: "enabled",
            to: "sized",
            event: "`KCOV_DISABLE` by the traced thread",
            claims: &["disable.stops-collection", "disable.lets-other-thread-enable"],
        },
        Step {
            from: "enabled",
            to: "sized",
            event: "the traced thread ends",
            claims: &["thread.exit-disables", "fork.child-exit-disables"],
        },
        Step {
            from: "enabled",
            to: "enabled",
            event: "execve(2)",
            claims: &["exec.tracing-goes-on"],
        },
        Step {
            from: "enabled",
            to: "closed",
            event: "the last descriptor is closed",
            claims: &["close.while-enabled-keeps-tracing"],
        },
        Step {
            from: "closed",
            to: "",
            event: "the traced thread ends",
            claims: &["close.while-enabled-ends-with-the-thread"],
        },
        Step {
            from: "sized",
            to: "remote",
            event: "`KCOV_REMOTE_ENABLE`",
            claims: &["remote.documented-call"],
        },
        Step {
            from: "remote",
            to: "sized",
            event: "`KCOV_DISABLE` by the thread that enabled",
            claims: &[
                "remote.release.disable-ends-collection",
                "remote.release.disable-frees-handles",
            ],
        },
        Step {
            from: "remote",
            to: "sized",
            event: "the thread that enabled ends",
            claims: &["remote.release.thread-exit-frees-handles"],
        },
        Step {
            from: "remote",
            to: "remote",
            event: "the last descriptor is closed: the handles stay taken",
            claims: &["remote.release.close-keeps-handles"],
        },
    ],
    arrows: &[
        Arrow { points: &[(195, 16), (195, 44)], at: (203, 34), anchor: Start, label: &["open"] },
        Arrow {
            points: &[(195, 88), (195, 164)],
            at: (203, 130),
            anchor: Start,
            label: &["KCOV_INIT_TRACE"],
        },
        Arrow {
            points: &[(160, 208), (160, 246), (110, 246), (110, 304)],
            at: (116, 268),
            anchor: Start,
            label: &["KCOV_ENABLE"],
        },
        Arrow {
            points: &[(50, 304), (50, 186), (135, 186)],
            at: (20, 162),
            anchor: Start,
            label: &["KCOV_DISABLE,", "end of thread"],
        },
        Arrow {
            points: &[(230, 208), (230, 246), (280, 246), (280, 304)],
            at: (274, 290),
            anchor: End,
            label: &["KCOV_REMOTE_ENABLE"],
        },
        Arrow {
            points: &[(340, 304), (340, 186), (255, 186)],
            at: (372, 162),
            anchor: End,
            label: &["KCOV_DISABLE,", "end of thread"],
        },
        Arrow {
            points: &[(80, 348), (80, 396)],
            at: (88, 376),
            anchor: Start,
            label: &["last close"],
        },
        Arrow {
            points: &[(140, 418), (226, 418)],
            at: (232, 422),
            anchor: Start,
            label: &["end of thread: gone"],
        },
    ],
};

pub(super) const NETBSD: Machine = Machine {
    title: "States of a NetBSD device",
    system: registry::NETBSD,
    height: 430,
    states: &[
        State { name: "unsized", meaning: "opened, without a buffer", class: "", at: (20, 44) },
        State {
            name: "sized",
            meaning: "has its buffer, may be mapped; no thread is traced into it",
            class: "one",
            at: (20, 164),
        },
        State {
            name: "enabled",
            meaning: "the thread that enabled is traced",
            class: "two",
            at: (20, 284),
        },
        State {
            name: "closed",
            meaning: "enabled, without any descriptor: nobody can disable it, a mapping goes on to \
                      show the records",
            class: "none",
            at: (20, 376),
        },
        State {
            name: "attached",
            meaning: "stands for a source of remote coverage, maps the source's buffer (10 and \
                      later)",
            class: "one",
            at: (250, 104),
        },
        State {
            name: "remote",
            meaning: "the source is collected from, for all who are attached to it",
            class: "three",
            at: (250, 264),
        },
    ],
    steps: &[
        Step {
            from: "",
            to: "unsized",
            event: "open(2)",
            claims: &["open.instances-are-independent"],
        },
        Step {
            from: "unsized",
            to: "sized",
            event: "`KCOV_IOC_SETBUFSIZE`",
            claims: &["size.sets-the-buffer-size", "size.buffer-is-zeroed"],
        },
        Step {
            from: "unsized",
            to: "unsized",
            event: "a refused size",
            claims: &["size.refusal-leaves-device-unsized"],
        },
        Step {
            from: "sized",
            to: "enabled",
            event: "`KCOV_IOC_ENABLE`",
            claims: &["enable.current-thread", "map.not-needed-to-enable"],
        },
        Step {
            from: "enabled",
            to: "sized",
            event: "`KCOV_IOC_DISABLE` by the traced thread",
            claims: &["disable.stops-collection", "disable.lets-other-thread-enable"],
        },
        Step {
            from: "enabled",
            to: "sized",
            event: "the traced thread ends (on 10 maybe later)",
            claims: &["thread.exit-disables", "fork.child-exit-disables"],
        },
        Step {
            from: "enabled",
            to: "enabled",
            event: "execve(2)",
            claims: &["exec.tracing-goes-on"],
        },
        Step {
            from: "enabled",
            to: "closed",
            event: "the last descriptor is closed",
            claims: &[
                "close.while-enabled-keeps-tracing",
                "close.while-enabled-nobody-can-disable",
            ],
        },
        Step {
            from: "closed",
            to: "",
            event: "the traced thread ends",
            claims: &["close.while-enabled-ends-with-the-thread"],
        },
        Step {
            from: "unsized",
            to: "attached",
            event: "`KCOV_IOC_REMOTE_ATTACH`",
            claims: &["remote.attach.every-port-is-a-source", "remote.needs-no-size"],
        },
        Step {
            from: "sized",
            to: "attached",
            event: "`KCOV_IOC_REMOTE_ATTACH`",
            claims: &["remote.attach.own-buffer-comes-back"],
        },
        Step {
            from: "attached",
            to: "unsized",
            event: "`KCOV_IOC_REMOTE_DETACH`, if it was unsized",
            claims: &["remote.attach.own-buffer-can-be-sized-after-detach"],
        },
        Step {
            from: "attached",
            to: "sized",
            event: "`KCOV_IOC_REMOTE_DETACH`, if it was sized",
            claims: &["remote.attach.own-buffer-comes-back"],
        },
        Step {
            from: "attached",
            to: "remote",
            event: "`KCOV_IOC_ENABLE`",
            claims: &["remote.each-mode-in-turn"],
        },
        Step {
            from: "remote",
            to: "attached",
            event: "`KCOV_IOC_DISABLE` by anybody who is attached",
            claims: &[
                "remote.release.any-attached-may-disable",
                "remote.release.other-process-may-disable",
            ],
        },
        Step {
            from: "remote",
            to: "attached",
            event: "anybody who is attached detaches, closes or ends",
            claims: &[
                "remote.release.detach-of-other-disables",
                "remote.release.close-of-other-disables",
                "remote.release.process-exit-of-other-disables",
            ],
        },
        Step {
            from: "remote",
            to: "remote",
            event: "the thread that enabled ends",
            claims: &["remote.release.thread-exit-disables-not"],
        },
    ],
    arrows: &[
        Arrow { points: &[(80, 16), (80, 44)], at: (88, 34), anchor: Start, label: &["open"] },
        Arrow {
            points: &[(80, 88), (80, 164)],
            at: (74, 130),
            anchor: End,
            label: &["SETBUFSIZE"],
        },
        Arrow { points: &[(50, 208), (50, 284)], at: (45, 250), anchor: End, label: &["ENABLE"] },
        Arrow {
            points: &[(110, 284), (110, 208)],
            at: (117, 240),
            anchor: Start,
            label: &["DISABLE,", "end of thread"],
        },
        Arrow {
            points: &[(80, 328), (80, 376)],
            at: (88, 357),
            anchor: Start,
            label: &["last close"],
        },
        Arrow {
            points: &[(140, 398), (226, 398)],
            at: (232, 402),
            anchor: Start,
            label: &["end of thread: gone"],
        },
        Arrow {
            points: &[(140, 58), (330, 58), (330, 104)],
            at: (150, 51),
            anchor: Start,
            label: &["REMOTE_ATTACH"],
        },
        Arrow {
            points: &[(140, 196), (262, 196), (262, 148)],
            at: (150, 212),
            anchor: Start,
            label: &["REMOTE_ATTACH"],
        },
        Arrow {
            points: &[(250, 116), (200, 116), (200, 76), (140, 76)],
            at: (240, 130),
            anchor: End,
            label: &["REMOTE_DETACH"],
        },
        Arrow {
            points: &[(250, 138), (200, 138), (200, 178), (140, 178)],
            at: (0, 0),
            anchor: Start,
            label: &[],
        },
        Arrow {
            points: &[(340, 148), (340, 264)],
            at: (345, 214),
            anchor: Start,
            label: &["ENABLE"],
        },
        Arrow {
            points: &[(310, 264), (310, 148)],
            at: (304, 226),
            anchor: End,
            label: &["DISABLE,", "detach,", "close"],
        },
    ],
};

pub(super) fn picture(machine: &Machine) -> String {
    let mut svg = Svg::new(390, machine.height, machine.title);
    for State { name, class, at: (x, y), .. } in machine.states {
        svg.state(class, *x, *y, BOX.0, BOX.1);
        svg.text(x + BOX.0 / 2, y + BOX.1 / 2 + 5, Middle, name);
    }
    for Arrow { points, at: (x, y), anchor, label } in machine.arrows {
        svg.arrow(points);
        for (line, text) in (0..).zip(*label) {
            svg.note(*x, y + 16 * line, *anchor, text);
        }
    }
    svg.finish()
}

pub(super) fn table(machine: &Machine) -> String {
    let on = machine.system.name.to_lowercase();
    let mut page = String::from(MARK);
    page.push_str("| State | |\n|---|---|\n");
    for State { name, meaning, .. } in machine.states {
        writeln!(page, "| {name} | {} |", plain(meaning)).expect(WRITING);
    }
    page.push_str("\n| From | Event | To | Claims |\n|---|---|---|---|\n");
    for Step { from, to, event, claims } in machine.steps {
        let claims: Vec<_> = claims.iter().map(|id| link(&on, id)).collect();
        writeln!(page, "| {} | {event} | {} | {} |", name(from), name(to), claims.join("<br>"))
            .expect(WRITING);
    }
    page
}

/// Before it is opened and after it is gone a device has no state.
fn name(state: &str) -> &str {
    if state.is_empty() { "–" } else { state }
}

#[cfg(test)]
mod tests {
    use super::{LINUX, NETBSD};

    #[test]
    fn each_step_is_claimed_and_joins_states() {
        for machine in [LINUX, NETBSD] {
            let claims = machine.system.entries();
            let known =
                |state: &str| state.is_empty() || machine.states.iter().any(|s| s.name == state);
            for step in machine.steps {
                assert!(known(step.from) && known(step.to), "{} to {}", step.from, step.to);
                assert!(!step.claims.is_empty(), "{}", step.event);
                for id in step.claims {
                    let claim = claims.iter().find(|claim| claim.id == *id);
                    let claim = claim.unwrap_or_else(|| panic!("{id}: no such claim"));
                    assert_eq!(claim.status, "checked", "{id}");
                }
            }
        }
    }
}
