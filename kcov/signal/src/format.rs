//! The format of saved maps. It does not depend on a map's layout in memory.
//!
//! All numbers are little-endian.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `kcov-map` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | number of ranges |
//! | 16 | 8 | length of the whole in bytes |
//! | 24 | 8 | room of the fallback |
//! | 32 | 8 | number of signals |
//! | 40 | 16 each | the ranges: start, end; ascending, not empty, apart from each other |
//! | … | 1 to 10 each | the signals, ascending: the difference to the one before, in LEB128 |
//! | end - 4 | 4 | CRC-32 (IEEE) of all before |

use crate::merge::Inserted;
use crate::novelty::NoveltyMap;
use crate::ranges::Ranges;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::AtomicU64;

const MAGIC: [u8; 8] = *b"kcov-map";
const VERSION: u32 = 1;
const HEAD: usize = 40;
const CRC: usize = 4;

/// Why bytes are not a valid saved map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes do not start like a saved map.
    NotAMap,
    /// The map has this later version of the format.
    Version(u32),
    /// The end is missing: there are fewer bytes than the header says.
    Truncated,
    /// The checksum is wrong: the bytes have changed since they were saved.
    Checksum,
    /// The checksum is right but the content is invalid. This crate did not write it.
    Malformed,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot read the saved map: ")?;
        match self {
            FormatError::NotAMap => f.write_str("it is not a saved map; check the path"),
            FormatError::Version(version) => {
                write!(f, "it has version {version}, this crate reads {VERSION}; update the crate")
            }
            FormatError::Truncated => f.write_str("its end is missing; use a backup or start over"),
            FormatError::Checksum => {
                f.write_str("its checksum is wrong; use a backup or start over")
            }
            FormatError::Malformed => {
                f.write_str("its content is invalid and not from this crate; check the path")
            }
        }
    }
}

impl core::error::Error for FormatError {}

impl<M: AsRef<[AtomicU64]>> NoveltyMap<M> {
    /// Serializes the map for [`from_bytes`](NoveltyMap::from_bytes). Allocates.
    ///
    /// Equal maps give equal bytes. A signal usually takes one or two bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let ranges = self.ranges().iter();
        let mut bytes = Vec::with_capacity(HEAD + ranges.len() * 16 + CRC);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((ranges.len() as u32).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend((self.fallback_capacity() as u64).to_le_bytes());
        bytes.extend([0; 8]);
        for range in ranges {
            bytes.extend(range.start.to_le_bytes());
            bytes.extend(range.end.to_le_bytes());
        }
        // Others may add to the map meanwhile, so its own number may be larger.
        let (mut previous, mut signals) = (0, 0u64);
        for signal in self {
            put(&mut bytes, signal - previous);
            previous = signal;
            signals += 1;
        }
        let length = (bytes.len() + CRC) as u64;
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        bytes[32..40].copy_from_slice(&signals.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }
}

impl NoveltyMap {
    /// Reads a map that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// Whatever the bytes say, it allocates at most 144 MiB of zeroed memory, for the largest ranges and
    /// the largest fallback, and 16 times the size of the bytes. It touches a page of the zeroed
    /// memory only for a signal.
    ///
    /// # Errors
    ///
    /// Accepts only a whole saved map. [`FormatError`] says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<NoveltyMap, FormatError> {
        if bytes.len() < MAGIC.len() || bytes[..8] != MAGIC {
            return Err(FormatError::NotAMap);
        }
        let (mut head, _) = bytes.split_at_checked(HEAD).ok_or(FormatError::Truncated)?;
        head = &head[8..];
        let version = u32::from_le_bytes(take(&mut head)?);
        if version != VERSION {
            return Err(FormatError::Version(version));
        }
        let ranges = u32::from_le_bytes(take(&mut head)?);
        let length = u64::from_le_bytes(take(&mut head)?);
        let fallback = u64::from_le_bytes(take(&mut head)?);
        let signals = u64::from_le_bytes(take(&mut head)?);
        match length.cmp(&(bytes.len() as u64)) {
            core::cmp::Ordering::Greater => return Err(FormatError::Truncated),
            core::cmp::Ordering::Less => return Err(FormatError::Checksum),
            core::cmp::Ordering::Equal => {}
        }
        let body = bytes.len().checked_sub(CRC).filter(|body| *body >= HEAD);
        let (content, crc) = bytes.split_at(body.ok_or(FormatError::Malformed)?);
        if crc32fast::hash(content).to_le_bytes() != crc {
            return Err(FormatError::Checksum);
        }
        let map = read(&content[HEAD..], ranges, fallback, signals);
        map.ok_or(FormatError::Malformed)
    }
}

/// Reads the bytes between the head and the checksum.
fn read(mut rest: &[u8], ranges: u32, fallback: u64, signals: u64) -> Option<NoveltyMap> {
    let mut given = Vec::with_capacity((ranges as usize).min(rest.len() / 16));
    for _ in 0..ranges {
        let start = u64::from_le_bytes(take(&mut rest).ok()?);
        given.push(start..u64::from_le_bytes(take(&mut rest).ok()?));
    }
    let ranges = Ranges::new(given.iter().cloned()).ok()?;
    if !ranges.iter().eq(given) {
        return None;
    }
    let fallback = usize::try_from(fallback).ok()?;
    if fallback > NoveltyMap::MAX_FALLBACK {
        return None;
    }
    let map = NoveltyMap::with_fallback(ranges, fallback);
    let mut previous = 0;
    for index in 0..signals {
        let step = get(&mut rest)?;
        if step == 0 && index > 0 {
            return None;
        }
        previous = step.checked_add(previous)?;
        if map.remember(previous) != Inserted::New {
            return None;
        }
    }
    rest.is_empty().then_some(map)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], FormatError> {
    let (first, rest) = bytes.split_first_chunk().ok_or(FormatError::Truncated)?;
    *bytes = rest;
    Ok(*first)
}

/// Appends a number in LEB128.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number in LEB128, in its shortest form.
fn get(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = take(bytes).ok()?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return (byte != 0 || shift == 0).then_some(number);
        }
    }
    None
}
