//! Pictures with the colours of the surrounding page, or of the reader's system if they stand
//! alone.

use super::{WRITING, plain};
use std::fmt::Write as _;

/// Default colours. On a page, `docs/theme/kcov.css` sets them.
const STYLE: &str = "\
.kcov{--ink:#24292f;--faint:#6e7781;--paper:#fff;--one:#ddf4ff;--two:#dafbe1;--three:#fff8c5}
@media(prefers-color-scheme:dark){.kcov{--ink:#e6edf3;--faint:#9198a1;--paper:#0d1117;--one:#12324f;\
--two:#12392a;--three:#433207}}
.kcov text{fill:var(--ink);font:13px ui-monospace,Menlo,Consolas,monospace}
.kcov .note{fill:var(--faint);font-size:12px}
.kcov .box{stroke:var(--ink);fill:var(--paper)}
.kcov .one{fill:var(--one)}.kcov .two{fill:var(--two)}.kcov .three{fill:var(--three)}
.kcov .none{stroke-dasharray:3 3}
.kcov .line{stroke:var(--ink);fill:none}
.kcov .tip{fill:var(--ink)}
.kcov .frame{stroke:var(--faint);stroke-dasharray:4 3;fill:none}
";

/// The anchor of a text.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn word(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// A picture under construction, in pixels at its intended size.
pub(super) struct Svg {
    width: i32,
    height: i32,
    title: String,
    body: String,
}

impl Svg {
    pub(super) fn new(width: i32, height: i32, title: &str) -> Svg {
        Svg { width, height, title: plain(title), body: String::new() }
    }

    /// A box with the classes `box` and `class`.
    pub(super) fn rect(&mut self, class: &str, x: i32, y: i32, width: i32, height: i32) {
        writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        )
        .expect(WRITING);
    }

    /// A box with rounded corners.
    pub(super) fn state(&mut self, class: &str, x: i32, y: i32, width: i32, height: i32) {
        writeln!(
            self.body,
            "<rect class=\"box {class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" \
             height=\"{height}\" rx=\"8\"/>"
        )
        .expect(WRITING);
    }

    pub(super) fn text(&mut self, x: i32, y: i32, anchor: Anchor, text: &str) {
        self.words("", x, y, anchor, text);
    }

    pub(super) fn note(&mut self, x: i32, y: i32, anchor: Anchor, text: &str) {
        self.words(" class=\"note\"", x, y, anchor, text);
    }

    fn words(&mut self, class: &str, x: i32, y: i32, anchor: Anchor, text: &str) {
        let (anchor, text) = (anchor.word(), plain(text));
        writeln!(
            self.body,
            "<text{class} x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
        )
        .expect(WRITING);
    }

    /// A polyline without a head.
    pub(super) fn line(&mut self, points: &[(i32, i32)]) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        writeln!(self.body, "<polyline class=\"line\" points=\"{}\"/>", points.join(" "))
            .expect(WRITING);
    }

    /// A polyline along the axes, with a head at the last point.
    pub(super) fn arrow(&mut self, points: &[(i32, i32)]) {
        self.line(points);
        let [.., (x0, y0), (x, y)] = *points else { panic!("an arrow has two points at least") };
        let (dx, dy) = ((x - x0).signum() * 7, (y - y0).signum() * 7);
        let (sx, sy) = (dy * 4 / 7, dx * 4 / 7);
        writeln!(
            self.body,
            "<polygon class=\"tip\" points=\"{x},{y} {},{} {},{}\"/>",
            x - dx + sx,
            y - dy + sy,
            x - dx - sx,
            y - dy - sy,
        )
        .expect(WRITING);
    }

    /// The picture. It has no empty lines, so Markdown can include it.
    pub(super) fn finish(self) -> String {
        let Svg { width, height, title, body } = self;
        format!(
            "<svg class=\"kcov\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
             viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n{body}</svg>\n"
        )
    }
}
