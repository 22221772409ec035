//! Draws stacks as an SVG: a row for each level, the outermost on top, as wide as it has records.

use std::collections::BTreeMap;
use std::fmt::Write as _;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
/// The width of a character of text.
const CHARACTER: f64 = 6.6;
/// A narrower box is left out.
const LEAST: f64 = 1.0;

/// Boxes with the same name at one place in the tree.
#[derive(Debug, Default)]
struct Node<'a> {
    records: u64,
    inner: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn add(&mut self, mut stack: impl Iterator<Item = &'a str>, records: u64) {
        self.records += records;
        if let Some(name) = stack.next() {
            self.inner.entry(name).or_default().add(stack, records);
        }
    }

    fn depth(&self) -> usize {
        self.inner.values().map(|node| 1 + node.depth()).max().unwrap_or(0)
    }
}

/// Renders stacks, whose parts are separated by semicolons, with their numbers of records.
pub fn render(stacks: &BTreeMap<String, u64>, title: &str) -> String {
    let mut all = Node::default();
    for (stack, records) in stacks {
        all.add(stack.split(';'), *records);
    }
    let height = (all.depth() + 1) as f64 * ROW;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">\n"
    );
    let scale = WIDTH / all.records.max(1) as f64;
    draw(&mut svg, title, &all, (0.0, 0.0), scale);
    svg + "</svg>\n"
}

fn draw(svg: &mut String, name: &str, node: &Node<'_>, (x, y): (f64, f64), scale: f64) {
    let width = node.records as f64 * scale;
    if width < LEAST {
        return;
    }
    let records = if node.records == 1 { "record" } else { "records" };
    let room = ((width - 4.0) / CHARACTER).max(0.0) as usize;
    let length = name.chars().count();
    let text: String = match room {
        0..=2 => String::new(),
        room if room < length => name.chars().take(room - 1).chain(['…']).collect(),
        _ => name.to_owned(),
    };
    writeln!(
        svg,
        "<g><title>{}: {} {records}</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{:.1}\" \
         height=\"{}\" fill=\"hsl({}, 70%, 72%)\"/><text x=\"{:.1}\" y=\"{}\">{}</text></g>",
        escape(name),
        node.records,
        (width - 0.5).max(LEAST),
        ROW - 1.0,
        hue(name),
        x + 2.0,
        y + 13.0,
        escape(&text)
    )
    .expect("writing to a string cannot fail");
    let mut x = x;
    for (name, node) in &node.inner {
        draw(svg, name, node, (x, y + ROW), scale);
        x += node.records as f64 * scale;
    }
}

/// A warm colour for a name, the same each time.
fn hue(name: &str) -> u32 {
    name.bytes().fold(7, |hue: u32, byte| hue.wrapping_mul(31).wrapping_add(byte.into())) % 55
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_as_wide_as_it_has_records() {
        let stacks = [("fs;read.c;<read>".to_owned(), 3), ("mm;map.c;map".to_owned(), 1)];
        let svg = render(&stacks.into(), "ls");
        // Without a size a browser may show an image as 0 pixels wide.
        let size = "width=\"1200\" height=\"72\" viewBox=\"0 0 1200 72\"";
        assert!(svg.contains(size), "{svg}");
        assert!(
            svg.contains("<title>ls: 4 records</title><rect x=\"0.0\" y=\"0\" width=\"1199.5\"")
        );
        assert!(
            svg.contains("<title>fs: 3 records</title><rect x=\"0.0\" y=\"18\" width=\"899.5\"")
        );
        assert!(
            svg.contains("<title>map: 1 record</title><rect x=\"900.0\" y=\"54\" width=\"299.5\"")
        );
        assert!(svg.contains("&lt;read&gt;</text>"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 7);
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let stacks = [("wide_function".to_owned(), 10_000), ("narrow".to_owned(), 1)];
        let svg = render(&stacks.into(), "ls");
        assert!(svg.contains("wide_function</text>") && !svg.contains("narrow"), "{svg}");
        let stacks = [("wide".to_owned(), 990), ("cut_off_here".to_owned(), 60)];
        assert!(render(&stacks.into(), "ls").contains(">cut_off_…</text>"));
        assert!(render(&BTreeMap::new(), "ls").starts_with("<svg "));
    }
}
