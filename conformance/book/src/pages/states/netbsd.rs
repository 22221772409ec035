//! NetBSD.

use super::Anchor::{End, Start};
use super::{Arrow, Machine, Placed, State, Step, common, registry};
const ATTACHED: State = State {
    name: "attached",
    meaning: "represents a source of remote coverage; mmap shows the source's buffer (NetBSD 10 \
              and later)",
    class: "one",
};

const REMOTE: State = State {
    name: "remote",
    meaning: "the source is enabled, for all attached devices",
    class: "three",
};

const STEPS: &[Step] = &[
    Step {
        from: "closed",
        to: "closed",
        event: "{disable} of another device by the traced thread",
        acts: &[],
        claims: &["close.while-enabled-nobody-can-disable"],
    },
    Step {
        from: "unsized",
        to: "attached",
        event: "`KCOV_IOC_REMOTE_ATTACH`",
        acts: &["attach"],
        claims: &["remote.attach.every-port-is-a-source", "remote.needs-no-size"],
    },
    Step {
        from: "sized",
        to: "attached",
        event: "`KCOV_IOC_REMOTE_ATTACH`",
        acts: &["attach"],
        claims: &["remote.attach.own-buffer-comes-back"],
    },
    Step {
        from: "attached",
        to: "unsized",
        event: "`KCOV_IOC_REMOTE_DETACH`, if it was unsized",
        acts: &["detach"],
        claims: &["remote.attach.own-buffer-can-be-sized-after-detach"],
    },
    Step {
        from: "attached",
        to: "sized",
        event: "`KCOV_IOC_REMOTE_DETACH`, if it was sized",
        acts: &["detach"],
        claims: &["remote.attach.own-buffer-comes-back"],
    },
    Step {
        from: "attached",
        to: "remote",
        event: "{enable}",
        acts: &["enable"],
        claims: &["remote.each-mode-in-turn"],
    },
    Step {
        from: "remote",
        to: "attached",
        event: "{disable} through any attached device",
        acts: &["disable", "other thread disables"],
        claims: &[
            "remote.release.any-attached-may-disable",
            "remote.release.other-process-may-disable",
        ],
    },
    Step {
        from: "remote",
        to: "attached",
        event: "another attached device is detached or closed",
        acts: &["another device attaches and detaches"],
        claims: &[
            "remote.release.detach-of-other-disables",
            "remote.release.close-of-other-disables",
            "remote.release.process-exit-of-other-disables",
        ],
    },
    Step {
        from: "remote",
        to: "remote",
        event: "the enabling thread exits",
        acts: &["this thread exits"],
        claims: &["remote.release.thread-exit-keeps-it-enabled"],
    },
    Step {
        from: "remote",
        to: "unsized",
        event: "`KCOV_IOC_REMOTE_DETACH`, if it was unsized",
        acts: &["detach"],
        claims: &["remote.release.detach-disables"],
    },
    Step {
        from: "remote",
        to: "sized",
        event: "`KCOV_IOC_REMOTE_DETACH`, if it was sized",
        acts: &["detach"],
        claims: &["remote.release.detach-disables"],
    },
    Step {
        from: "remote",
        to: "",
        event: "close of the last descriptor",
        acts: &["last close"],
        claims: &["remote.release.close-disables"],
    },
    Step {
        from: "unsized",
        to: "",
        event: "close of the last descriptor",
        acts: &["last close"],
        claims: &["close.succeeds-in-every-state"],
    },
    Step {
        from: "sized",
        to: "",
        event: "close of the last descriptor",
        acts: &["last close"],
        claims: &["close.succeeds-in-every-state"],
    },
    Step {
        from: "attached",
        to: "",
        event: "close of the last descriptor",
        acts: &["last close"],
        claims: &["close.succeeds-in-every-state"],
    },
];

pub(in super::super) const NETBSD: Machine = Machine {
    title: "States of a NetBSD device",
    system: registry::NETBSD,
    requests: [
        ("{size}", "`KCOV_IOC_SETBUFSIZE`"),
        ("{enable}", "`KCOV_IOC_ENABLE`"),
        ("{disable}", "`KCOV_IOC_DISABLE`"),
    ],
    height: 430,
    states: &[
        Placed { state: common::UNSIZED, seen: &["unsized"], at: (20, 44) },
        Placed {
            state: common::SIZED,
            seen: &["sized", "enabled by a thread that exited"],
            at: (20, 164),
        },
        Placed { state: common::ENABLED, seen: &["enabled by this thread"], at: (20, 284) },
        Placed { state: common::CLOSED, seen: &["enabled, closed"], at: (20, 376) },
        Placed { state: ATTACHED, seen: &["attached, unsized", "attached, sized"], at: (250, 104) },
        Placed { state: REMOTE, seen: &["remote, unsized", "remote, sized"], at: (250, 264) },
    ],
    steps: STEPS,
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
            label: &["DISABLE,", "thread exit"],
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
            label: &["thread exit: gone"],
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
