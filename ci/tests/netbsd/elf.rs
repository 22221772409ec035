//! Makes a fake kernel in the form of a real one.

/// The link address and the start of the code.
pub const LOAD: u32 = 0x10_0000;
/// The upper half of the address space belongs to the kernel.
pub const KERNEL: u64 = 0xffff_ffff_8000_0000;

fn note(owner: &str, kind: u32, content: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [owner.len() as u32 + 1, 4, kind] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(owner.as_bytes());
    bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
    bytes.extend_from_slice(&content.to_le_bytes());
    bytes
}

/// Makes an ELF file of NetBSD 10.99.12 with an entry point for QEMU, in two
/// segments: notes and code.
pub fn elf(entry: u64, code: &[u8]) -> Vec<u8> {
    const HEADERS: usize = 64 + 2 * 56;
    let notes = [note("NetBSD", 1, 1_099_001_200), note("Xen", 18, LOAD)].concat();
    let mut bytes = vec![0; HEADERS];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &2_u16.to_le_bytes());
    put(18, &62_u16.to_le_bytes());
    put(20, &1_u32.to_le_bytes());
    put(24, &entry.to_le_bytes());
    put(32, &64_u64.to_le_bytes());
    put(52, &64_u16.to_le_bytes());
    put(54, &56_u16.to_le_bytes());
    put(56, &2_u16.to_le_bytes());
    let segments = [(4_u32, 0, notes.len(), HEADERS), (1, LOAD, code.len(), HEADERS + notes.len())];
    for (index, (kind, address, length, place)) in segments.into_iter().enumerate() {
        let at = 64 + 56 * index;
        put(at, &kind.to_le_bytes());
        put(at + 4, &7_u32.to_le_bytes());
        put(at + 8, &(place as u64).to_le_bytes());
        for field in [16, 24] {
            put(at + field, &u64::from(address).to_le_bytes());
        }
        for field in [32, 40] {
            put(at + field, &(length as u64).to_le_bytes());
        }
        put(at + 48, &4_u64.to_le_bytes());
    }
    [bytes, notes, code.to_vec()].concat()
}
