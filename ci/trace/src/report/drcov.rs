//! The drcov format of DynamoRIO, version 2, for disassemblers' coverage plugins.

use crate::coverage::Coverage;
use object::{Object as _, ObjectSegment as _};
use std::fs;
use std::path::Path;

/// A range of code, in recorded addresses.
struct Image {
    start: u64,
    end: u64,
    path: String,
}

/// Renders the file. A block is the single byte at the hook's return address: an executed
/// instruction begins there, but its block's length is not recorded.
pub fn render(coverage: &Coverage, kernel: Option<&Path>) -> Vec<u8> {
    let slide = coverage.slide.unwrap_or(0);
    let places: Vec<u64> = coverage.total().iter().map(|(pc, _)| pc.address()).collect();
    let mut images = vec![kernel_image(kernel, &places)];
    for module in coverage.modules.iter() {
        let start = module.start.wrapping_sub(slide);
        images.push(Image {
            start,
            end: start.wrapping_add(module.size),
            path: module.name.clone(),
        });
    }

    let mut text = String::from("DRCOV VERSION: 2\nDRCOV FLAVOR: drcov\n");
    text += &format!("Module Table: version 2, count {}\n", images.len());
    text += "Columns: id, base, end, entry, checksum, timestamp, path\n";
    for (id, Image { start, end, path }) in images.iter().enumerate() {
        text += &format!("{id:>3}, {start:#018x}, {end:#018x}, 0x0, 0x0, 0x0, {path}\n");
    }
    let mut blocks = Vec::new();
    for place in places {
        // Modules are smaller and may overlap the kernel's range.
        let inside = |image: &Image| (image.start..image.end).contains(&place);
        let found = images.iter().enumerate().rev().find(|(_, image)| inside(image));
        let Some((id, image)) = found else { continue };
        let Ok(offset) = u32::try_from(place - image.start) else { continue };
        blocks.extend_from_slice(&offset.to_le_bytes());
        blocks.extend_from_slice(&1_u16.to_le_bytes());
        blocks.extend_from_slice(&(id as u16).to_le_bytes());
    }
    text += &format!("BB Table: {} bbs\n", blocks.len() / 8);
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(&blocks);
    bytes
}

/// Returns the range of the kernel's code, from its file or else from the records.
fn kernel_image(file: Option<&Path>, places: &[u64]) -> Image {
    let path = file.map_or_else(|| "vmlinux".into(), |file| file.display().to_string());
    let bytes = file.and_then(|file| fs::read(file).ok()).unwrap_or_default();
    let mut segments: Vec<(u64, u64)> = match object::File::parse(&*bytes) {
        // Per-processor data is at address 0.
        Ok(file) => file
            .segments()
            .map(|segment| (segment.address(), segment.address().wrapping_add(segment.size())))
            .filter(|(start, _)| *start != 0)
            .collect(),
        Err(_) => Vec::new(),
    };
    if segments.is_empty() {
        segments.extend(places.iter().map(|place| (place & !0xfff, place + 16)));
    }
    let start = segments.iter().map(|(start, _)| *start).min().unwrap_or(0);
    let end = segments.iter().map(|(_, end)| *end).max().unwrap_or(0);
    Image { start, end, path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Thread;
    use crate::modules::Module;
    use kcov::Pc;

    #[test]
    fn blocks_are_counted_from_their_image() {
        let mut thread = Thread::default();
        thread.count([0x60_0010, 0x60_2005, 0x90_0105].into_iter().map(Pc::new));
        let module = Module { name: "nfs".into(), start: 0x90_0000, size: 4096 };
        let coverage = Coverage {
            slide: Some(0),
            modules: [module].into_iter().collect(),
            threads: vec![thread],
            ..Coverage::default()
        };
        let bytes = render(&coverage, None);
        let head = b"BB Table: 3 bbs\n";
        let at = bytes.windows(head.len()).position(|window| window == head).expect("a table");
        let text = String::from_utf8(bytes[..at].to_vec()).expect("text");
        assert!(text.contains("  0, 0x0000000000600000,") && text.contains(", nfs\n"), "{text}");
        let blocks: Vec<_> = bytes[at + head.len()..].chunks(8).collect();
        assert_eq!(blocks[0], [0x10, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(blocks[1], [0x05, 0x20, 0, 0, 1, 0, 0, 0]);
        assert_eq!(blocks[2], [0x05, 0x01, 0, 0, 1, 0, 1, 0]);
    }
}
