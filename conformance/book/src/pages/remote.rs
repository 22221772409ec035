//! The way of a remote section's records.

use super::svg::{Anchor, Svg};

pub(super) fn section_linux() -> String {
    let mut svg = Svg::new(390, 236, "A remote section of Linux and the buffer that collects it");
    for (y, class, name, first, second) in [
        (8, "one", "your thread", "enables with a handle,", "then makes system calls"),
        (96, "two", "a worker, softirq", "starts a section with", "the same handle"),
        (184, "three", "your buffer", "gets the records", "as one block"),
    ] {
        svg.state(class, 10, y, 160, 44);
        svg.text(90, y + 27, Anchor::Middle, name);
        svg.note(180, y + 18, Anchor::Start, first);
        svg.note(180, y + 34, Anchor::Start, second);
    }
    svg.arrow(&[(90, 52), (90, 96)]);
    svg.note(98, 78, Anchor::Start, "work, with the handle");
    svg.arrow(&[(90, 140), (90, 184)]);
    svg.note(98, 166, Anchor::Start, "the section ends: copy");
    svg.finish()
}
