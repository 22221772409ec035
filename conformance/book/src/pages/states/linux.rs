//! Linux.

use super::Anchor::{End, Middle, Start};
use super::{Arrow, Machine, Placed, State, Step, common, registry};

const REMOTE: State = State {
    name: "remote",
    meaning: "collects the remote sections of its handles for the enabling thread",
    class: "three",
};

const STEPS: &[Step] = &[
    Step {
        from: "sized",
        to: "remote",
        event: "`KCOV_REMOTE_ENABLE`",
        acts: &["enable remotely"],
        claims: &["remote.documented-call"],
    },
    Step {
        from: "remote",
        to: "sized",
        event: "{disable} by the enabling thread",
        acts: &["disable"],
        claims: &["remote.release.disable-ends-collection", "remote.release.disable-frees-handles"],
    },
    Step {
        from: "remote",
        to: "sized",
        event: "the enabling thread exits",
        acts: &["this thread exits"],
        claims: &["remote.release.thread-exit-frees-handles"],
    },
    Step {
        from: "remote",
        to: "closed",
        event: "close of the last descriptor; the handles stay registered",
        acts: &["last close"],
        claims: &["remote.release.close-keeps-handles"],
    },
    Step {
        from: "unsized",
        to: "",
        event: "close of the last descriptor",
        acts: &["last close"],
        claims: &["close.instance-is-freed"],
    },
    Step {
        from: "sized",
        to: "",
        event: "close of the last descriptor",
        acts: &["last close"],
        claims: &["close.instance-is-freed"],
    },
];

pub(in super::super) const LINUX: Machine = Machine {
    title: "States of a Linux device",
    system: registry::LINUX,
    requests: [
        ("{size}", "`KCOV_INIT_TRACE`"),
        ("{enable}", "`KCOV_ENABLE`"),
        ("{disable}", "`KCOV_DISABLE`"),
    ],
    height: 480,
    states: &[
        Placed { state: common::UNSIZED, seen: &["unsized"], at: (135, 44) },
        Placed { state: common::SIZED, seen: &["sized"], at: (135, 164) },
        Placed { state: common::ENABLED, seen: &["enabled by this thread"], at: (20, 304) },
        Placed { state: REMOTE, seen: &["remote for this thread"], at: (250, 304) },
        Placed {
            state: common::CLOSED,
            seen: &["enabled, closed", "remote, closed"],
            at: (135, 396),
        },
    ],
    steps: STEPS,
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
            label: &["KCOV_DISABLE,", "thread exit"],
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
            label: &["KCOV_DISABLE,", "thread exit"],
        },
        Arrow {
            points: &[(80, 348), (80, 372), (165, 372), (165, 396)],
            at: (195, 366),
            anchor: Middle,
            label: &["last close"],
        },
        Arrow {
            points: &[(310, 348), (310, 372), (225, 372), (225, 396)],
            at: (0, 0),
            anchor: Start,
            label: &[],
        },
        Arrow {
            points: &[(195, 440), (195, 468)],
            at: (203, 460),
            anchor: Start,
            label: &["thread exit: gone"],
        },
    ],
};
