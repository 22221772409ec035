//! Saved maps: they load unchanged, and nothing else loads as a map.

use kcov_signal::{FormatError, NoveltyMap, Ranges};
use proptest::prelude::*;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::{fs, thread};

const TEXT: u64 = 0xffff_ffff_8100_0000;

fn map(signals: &[u64]) -> NoveltyMap {
    let ranges = Ranges::new([TEXT..TEXT + 0x10_0000, TEXT + 0x200_0000..TEXT + 0x200_1000]);
    let map = NoveltyMap::with_fallback(ranges.unwrap(), 100);
    map.merge(signals);
    map
}

fn same(one: &NoveltyMap, other: &NoveltyMap) -> bool {
    one.iter().eq(other)
        && one.ranges() == other.ranges()
        && one.fallback_capacity() == other.fallback_capacity()
}

#[test]
fn the_format_is_as_documented() {
    let bytes = map(&[TEXT + 0x80, 5, 6]).to_bytes();
    let mut expected = b"kcov-map".to_vec();
    expected.extend([1, 0, 0, 0, 2, 0, 0, 0, 88, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([100, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    for bound in [TEXT, TEXT + 0x10_0000, TEXT + 0x200_0000, TEXT + 0x200_1000] {
        expected.extend(bound.to_le_bytes());
    }
    // 5, then 1 more, then 0xffff_ffff_8100_007a more, in groups of seven bits.
    expected.extend([5, 1, 0xfa, 0x80, 0x80, 0x88, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x01]);
    assert_eq!(bytes[..bytes.len() - 4], expected);
    assert_eq!(bytes.len(), 88);
}

#[test]
fn each_kind_of_damage_has_its_error() {
    let bytes = map(&[TEXT, TEXT + 5, 77]).to_bytes();
    for end in 0..bytes.len() {
        let expected = if end < 8 { FormatError::NotAMap } else { FormatError::Truncated };
        assert_eq!(NoveltyMap::from_bytes(&bytes[..end]).unwrap_err(), expected, "{end}");
    }
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = NoveltyMap::from_bytes(&bytes).unwrap_err();
        match bit / 8 {
            0..8 => assert_eq!(error, FormatError::NotAMap),
            8..12 => assert!(matches!(error, FormatError::Version(_))),
            16..24 => assert!(matches!(error, FormatError::Truncated | FormatError::Checksum)),
            _ => assert_eq!(error, FormatError::Checksum),
        }
    }
    assert_eq!(NoveltyMap::from_bytes(b"#!/bin/sh").unwrap_err(), FormatError::NotAMap);
    assert_eq!(
        NoveltyMap::from_bytes(&[&bytes[..], &[0]].concat()).unwrap_err(),
        FormatError::Checksum
    );
}

/// Corrects the checksum.
fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    let crc = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn what_makes_no_sense_is_refused_whatever_its_checksum() {
    let bytes = map(&[TEXT, TEXT + 5, 77]).to_bytes();
    assert!(NoveltyMap::from_bytes(&seal(bytes.clone())).is_ok());
    let body = bytes.len() - 4;
    for (at, value) in [
        (12, 1),        // fewer ranges
        (12, 3),        // more ranges
        (12 + 3, 0xff), // ranges without end
        (24, 0),        // no room outside the ranges
        (24 + 7, 1),    // room without end
        (32, 2),        // fewer signals
        (32, 4),        // more signals
        (48 + 7, 0),    // a range that ends before it starts
        (body - 1, 0),  // the same signal again
    ] {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        let read = NoveltyMap::from_bytes(&seal(bytes));
        assert_eq!(read.unwrap_err(), FormatError::Malformed, "{at}");
    }
}

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("kcov-{test}-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    directory
}

#[test]
fn files_are_replaced_as_a_whole() {
    let directory = directory("map");
    let path = directory.join("map");
    let (first, second) = (map(&[TEXT, 3]), map(&[TEXT + 1]));
    let error = NoveltyMap::load(&path).unwrap_err();
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    assert_eq!(cause.map(io::Error::kind), Some(ErrorKind::NotFound));
    first.save(&path).unwrap();
    assert!(same(&NoveltyMap::load(&path).unwrap(), &first));
    second.save(&path).unwrap();
    assert!(same(&NoveltyMap::load(&path).unwrap(), &second));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "nothing is left beside");

    // A failed save changes nothing and leaves nothing beside.
    let taken = directory.join("taken");
    fs::create_dir(&taken).unwrap();
    let error = second.save(&taken).unwrap_err();
    assert_eq!((error.path(), error.format()), (taken.as_path(), None));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);

    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = NoveltyMap::load(&path).unwrap_err();
    assert_eq!(error.format(), Some(FormatError::Truncated));
    assert!(error.source().unwrap().is::<FormatError>());
    let text = error.to_string();
    assert!(
        text.starts_with("cannot load the map ") && text.contains("its end is missing"),
        "{text}"
    );
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn the_remains_of_crashed_saves_disturb_no_other() {
    let directory = directory("remains");
    let path = directory.join("map");
    let remains = |number| directory.join(format!("map.{number}.new"));
    for number in 0..20 {
        fs::write(remains(number), b"kcov-").unwrap();
    }
    let map = map(&[TEXT, 3]);
    map.save(&path).unwrap();
    assert!(same(&NoveltyMap::load(&path).unwrap(), &map));
    // Another process may still write to them.
    assert!((0..20).all(|number| fs::read(remains(number)).unwrap() == b"kcov-"));
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn threads_may_save_to_one_file_at_once() {
    let directory = directory("threads");
    let path = directory.join("map");
    let maps: [NoveltyMap; 4] = [3, 4, 5, 6].map(|signal| map(&[TEXT, signal]));
    thread::scope(|scope| {
        for map in &maps {
            scope.spawn(|| (0..20).for_each(|_| map.save(&path).unwrap()));
        }
    });
    let loaded = NoveltyMap::load(&path).unwrap();
    assert!(maps.iter().any(|map| same(map, &loaded)));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "nothing is left beside");
    fs::remove_dir_all(&directory).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_was_saved_comes_back(
        near in prop::collection::vec(TEXT..TEXT + 0x1000, 0..600),
        far in prop::collection::vec(any::<u64>(), 0..100),
    ) {
        let saved = map(&[near, far].concat());
        let bytes = saved.to_bytes();
        let loaded = NoveltyMap::from_bytes(&bytes).unwrap();
        prop_assert!(same(&loaded, &saved));
        prop_assert_eq!(loaded.to_bytes(), bytes);
    }

    /// With any bytes after a plausible head, loading ends; a map that it accepts is what this
    /// crate would have written.
    #[test]
    fn any_bytes_are_read_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 44..200),
        ranges in 0u8..4,
        signals in 0u8..40,
    ) {
        let length = bytes.len() as u64;
        bytes[..8].copy_from_slice(b"kcov-map");
        bytes[8..16].copy_from_slice(&[1, 0, 0, 0, ranges, 0, 0, 0]);
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        bytes[24..32].copy_from_slice(&[10, 0, 0, 0, 0, 0, 0, 0]);
        bytes[32..40].copy_from_slice(&[signals, 0, 0, 0, 0, 0, 0, 0]);
        let bytes = seal(bytes);
        match NoveltyMap::from_bytes(&bytes) {
            Ok(map) => prop_assert_eq!(map.to_bytes(), bytes),
            Err(error) => prop_assert_eq!(error, FormatError::Malformed),
        }
    }
}
