//! The parts that are the same on both systems.

use super::{State, Step};

pub(super) const UNSIZED: State =
    State { name: "unsized", meaning: "open, without a buffer", class: "" };

pub(super) const SIZED: State = State {
    name: "sized",
    meaning: "has a buffer that can be mapped; no thread is traced",
    class: "one",
};

pub(super) const ENABLED: State =
    State { name: "enabled", meaning: "the enabling thread is traced", class: "two" };

pub(super) const CLOSED: State = State {
    name: "closed",
    meaning: "enabled without a descriptor: nobody can disable it; mappings still show the records",
    class: "none",
};

/// `{size}`, `{enable}` and `{disable}` represent the ioctls.
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
        acts: &["set size"],
        claims: &["size.sets-the-buffer-size", "size.buffer-is-zeroed"],
    },
    Step {
        from: "unsized",
        to: "unsized",
        event: "{size} fails",
        acts: &["set size 1"],
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
        event: "the traced thread exits",
        acts: &["this thread exits"],
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
        event: "close of the last descriptor",
        acts: &["last close"],
        claims: &["close.while-enabled-keeps-tracing"],
    },
    Step {
        from: "closed",
        to: "",
        event: "the traced thread exits",
        acts: &["this thread exits"],
        claims: &["close.while-enabled-ends-with-the-thread"],
    },
];
