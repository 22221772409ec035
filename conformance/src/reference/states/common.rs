//! What the devices of both systems have in common.

use super::{State, Step};

pub(super) const UNSIZED: State =
    State { name: "unsized", meaning: "opened, without a buffer", class: "" };

pub(super) const SIZED: State = State {
    name: "sized",
    meaning: "has its buffer, may be mapped; no thread is traced into it",
    class: "one",
};

pub(super) const ENABLED: State =
    State { name: "enabled", meaning: "the thread that enabled is traced", class: "two" };

pub(super) const CLOSED: State = State {
    name: "closed",
    meaning: "enabled, without any descriptor: nobody can disable it, a mapping goes on to show \
              the records",
    class: "none",
};

/// Of both systems; `{size}`, `{enable}` and `{disable}` stand for the requests.
pub(super) const STEPS: &[Step] = &[
    Step {
        from: "",
        to: "unsized",
        event: "open(2)",
        acts: &[],
        claims: &["open.instances-are-independent"],
    },
    Step {
        from: "unsized",
        to: "sized",
        event: "{size}",
        acts: &["size"],
        claims: &["size.sets-the-buffer-size", "size.buffer-is-zeroed"],
    },
    Step {
        from: "unsized",
        to: "unsized",
        event: "a refused size",
        acts: &["size 1"],
        claims: &["size.refusal-leaves-device-unsized"],
    },
    Step {
        from: "sized",
        to: "enabled",
        event: "{enable}",
        acts: &["enable"],
        claims: &["enable.current-thread", "map.not-needed-to-enable"],
    },
    Step {
        from: "enabled",
        to: "sized",
        event: "{disable} by the traced thread",
        acts: &["disable"],
        claims: &["disable.stops-collection", "disable.lets-other-thread-enable"],
    },
    Step {
        from: "enabled",
        to: "sized",
        event: "the traced thread ends",
        acts: &["this thread ends"],
        claims: &["thread.exit-disables", "fork.child-exit-disables"],
    },
    Step {
        from: "enabled",
        to: "enabled",
        event: "execve(2)",
        acts: &[],
        claims: &["exec.tracing-goes-on"],
    },
    Step {
        from: "enabled",
        to: "closed",
        event: "the last descriptor is closed",
        acts: &["last close"],
        claims: &["close.while-enabled-keeps-tracing"],
    },
    Step {
        from: "closed",
        to: "",
        event: "the traced thread ends",
        acts: &["this thread ends"],
        claims: &["close.while-enabled-ends-with-the-thread"],
    },
];
