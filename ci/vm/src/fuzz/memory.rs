//! Reads the memory of a guest, also after its death.

use kcov_vm_guest::fuzz::slot::{BLOCK, Ran, Search};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

/// The bytes that are read at once.
const CHUNK: usize = 256 * BLOCK;

/// Opens the file that is a guest's physical memory: the largest deleted file of at least `least`
/// bytes that its process has open. User-Mode Linux and QEMU delete it as soon as they have it.
pub fn open(process: u32, least: u64) -> io::Result<File> {
    let mut largest: Option<(u64, File)> = None;
    for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
        let path = entry?.path();
        let name = fs::read_link(&path).unwrap_or_default();
        if !name.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") {
            continue;
        }
        // The process may have closed it by now.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let is_larger = largest.as_ref().is_none_or(|(bytes, _)| *bytes < metadata.len());
        if metadata.is_file() && metadata.len() >= least && is_larger {
            if let Ok(file) = File::open(&path) {
                largest = Some((metadata.len(), file));
            }
        }
    }
    let none = || io::Error::new(io::ErrorKind::NotFound, "the guest has no file for its memory");
    largest.map(|(_, file)| file).ok_or_else(none)
}

/// Finds the last complete input with this mark.
pub fn last(memory: &File, mark: [u8; 16]) -> io::Result<Option<Ran>> {
    let mut search = Search::new(mark);
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    // Most of the memory was never touched.
    while let Some(data) = next_data(memory, at)? {
        at = data / BLOCK as u64 * BLOCK as u64;
        let count = memory.read_at(&mut chunk, at)?;
        if count == 0 {
            break;
        }
        search.look(&chunk[..count]);
        at += count as u64;
    }
    Ok(search.last())
}

/// The next part of the file that is no hole.
fn next_data(file: &File, from: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(from)) {
        Err(Errno::NXIO) => Ok(None),
        found => Ok(Some(found?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_found_in_a_file_with_holes() {
        let mark = *b"0123456789abcdef";
        let mut block = vec![0; BLOCK];
        block[..16].copy_from_slice(&mark);
        block[16] = 1;
        block[28] = 3;
        block[32] = 7;
        block[40..43].copy_from_slice(b"abc");
        let file = tempfile::tempfile().unwrap();
        assert_eq!(last(&file, mark).unwrap(), None);
        file.write_all_at(&block, 3 * CHUNK as u64 + BLOCK as u64).unwrap();
        file.set_len(64 << 20).unwrap();
        let ran = Ran { input: b"abc".into(), parent: Some(7) };
        assert_eq!(last(&file, mark).unwrap(), Some(ran));
        assert_eq!(last(&file, [9; 16]).unwrap(), None);
    }

    #[test]
    fn the_largest_deleted_file_is_the_memory() {
        let files = [1 << 20, 3 << 20, 2 << 20].map(|bytes| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(bytes).unwrap();
            file
        });
        let found = open(std::process::id(), 3 << 20).unwrap();
        // Other tests of this process may have larger ones.
        assert!(found.metadata().unwrap().len() >= files[1].metadata().unwrap().len());
        // The guest has not made its memory yet.
        let early = open(std::process::id(), 1 << 40).unwrap_err();
        assert_eq!(early.kind(), io::ErrorKind::NotFound);
    }
}
