//! The model gives every error that the registry claims.
//!
//! A row is the id of a claim and a script that provokes its error. Each step has the acting thread
//! (the first by default), the operation, the device and the arguments. Devices `a` and `b` are
//! open for reading and writing, `r` is read-only and `w` write-only.

mod rows_linux;
mod rows_netbsd;
mod words;

use super::linux::{self, Linux};
use super::netbsd::{self, NetBsd};
use super::{Access, D, Driver, Geometry, M, Operation, Outcome, Request, T, Touch, Work, World};
use crate::claims::{Claims, Status};
use std::collections::BTreeMap;
use words::operation;

/// The errors of checked claims by id.
fn errors(files: &[&str]) -> BTreeMap<String, &'static str> {
    let claims = Claims::of_files(|file| files.contains(&file));
    let checked = claims.iter().filter(|claim| claim.status() == Status::Checked);
    checked.filter_map(|claim| Some((claim.id.clone(), claim.errno?))).collect()
}

/// The outcome of the last operation, after the others have succeeded.
fn last<R: Driver>(driver: R, script: &str) -> Outcome {
    let mut world = World::new(driver);
    let open = [
        ('a', Access::ReadWrite),
        ('b', Access::ReadWrite),
        ('r', Access::ReadOnly),
        ('w', Access::WriteOnly),
    ];
    let opened = open.map(|(letter, access)| Operation::Open {
        thread: T(0),
        descriptor: D(letter.into()),
        access,
    });
    let steps: Vec<Operation> =
        opened.into_iter().chain(script.split(';').map(operation)).collect();
    let (last, before) = steps.split_last().expect("an operation");
    for operation in before {
        assert!(world.possible(operation), "{script}: {operation:?}");
        let (outcome, after) = world.step(operation).remove(0);
        assert_eq!(outcome, Outcome::Done, "{script}: {operation:?}");
        world = after;
    }
    assert!(world.possible(last), "{script}: {last:?}");
    let mut steps = world.step(last);
    assert_eq!(steps.len(), 1, "{script}: it is certain");
    steps.remove(0).0
}

/// Claims whose error comes from elsewhere than the driver and the system calls around it.
const OUTSIDE: &[&str] = &[
    "open.unprivileged-is-refused",
    "open.without-a-second-descriptor-is-refused",
    "open.not-built-in-is-refused",
    "remote.handles-changed-meanwhile-is-refused",
    // Words have eight bytes in the model.
    "remote.area-size-overflow-is-refused",
    "map.access-cannot-be-added",
];

fn compare<R: Driver>(
    registry: &BTreeMap<String, &'static str>,
    rows: &[(&str, &str)],
    driver: impl Fn(&str) -> R,
) {
    for (id, errno) in registry {
        let scripts: Vec<_> = rows.iter().filter(|row| row.0 == id).collect();
        // The model never runs out of memory, and does not truncate on Linux.
        let outside = OUTSIDE.contains(&id.as_str())
            || id.starts_with("faults.")
            || id.starts_with("truncate.");
        assert!(outside == scripts.is_empty(), "{id}: {} rows", scripts.len());
        for (_, script) in scripts {
            let outcome = last(driver(id), script);
            assert!(
                matches!(outcome, Outcome::Refused(name) if name == *errno),
                "{id}: the claim says {errno}, the model {outcome:?}, for: {script}"
            );
        }
    }
    for (id, _) in rows {
        assert!(registry.contains_key(*id), "there is no error in a claim {id}");
    }
}

#[test]
fn linux_errors_are_those_of_the_registry() {
    let registry = errors(&["linux-document.toml", "linux-driver.toml"]);
    compare(&registry, rows_linux::LINUX, |id| {
        Linux::new(linux::Kernel {
            comparisons: !id.ends_with("comparisons-not-built-is-refused"),
            bounds_count: true,
            // Claims about kernels on which a thread has at most one instance.
            local_and_remote: !matches!(
                id,
                "enable.busy-if-thread-collects-remotely" | "remote.busy-if-thread-traced-locally"
            ),
        })
    });
}

#[test]
fn netbsd_errors_are_those_of_the_registry() {
    let registry = errors(&["netbsd-document.toml", "netbsd-driver.toml"]);
    // Claims about NetBSD 9 only.
    const NINE: &[&str] = &[
        "open.truncate-is-refused-as-invalid",
        "request.remote-is-refused-as-unknown",
        "enable.size-comes-before-mode",
        "enable.device-state-comes-before-mode",
        "enable.thread-comes-before-mode",
    ];
    compare(&registry, rows_netbsd::NETBSD, |id| {
        NetBsd::new(netbsd::Kernel { attaches: !NINE.contains(&id), ports: 3 })
    });
}

/// The kernel may have overwritten the word, however short the recording was.
#[test]
fn a_word_that_is_stored_while_its_buffer_is_recorded_into_may_be_lost() {
    let kernel = linux::Kernel { comparisons: true, bounds_count: true, local_and_remote: true };
    let (thread, descriptor, map) = (T(0), D(0), M(0));
    let geometry =
        Geometry { bytes: 4096, offset: 0, writable: true, executable: false, private: false };
    let ask = |request| Operation::Ask { thread, descriptor, request };
    let load = Operation::Load { thread, map };
    let store = Operation::Store { thread, map, word: 7 };
    let loaded = |between: &[Operation]| {
        let access = Access::ReadWrite;
        let before = [
            Operation::Open { thread, descriptor, access },
            ask(Request::Size(512)),
            Operation::Map { thread, descriptor, map, geometry },
        ];
        let all = before.iter().chain(between);
        let world = all.fold(World::new(Linux::new(kernel)), |world, operation| {
            assert!(world.possible(operation));
            world.step(operation).swap_remove(0).1
        });
        world.step(&load).swap_remove(0).0
    };
    let (enable, disable) = (ask(Request::Enable(0)), ask(Request::Disable(0)));
    assert_eq!(loaded(std::slice::from_ref(&store)), Outcome::Word(7));
    let meanwhile = [enable.clone(), store.clone(), disable.clone()];
    assert_eq!(loaded(&meanwhile), Outcome::Anything);
    assert_eq!(loaded(&[enable, disable, store]), Outcome::Word(7));
}

/// The effect of each operation on buffers, and who may record meanwhile.
#[test]
fn only_what_looks_at_the_count_touches_a_buffer() {
    let kernel = linux::Kernel { comparisons: true, bounds_count: true, local_and_remote: true };
    let (thread, other, descriptor, map) = (T(0), T(1), D(0), M(0));
    let geometry =
        Geometry { bytes: 8192, offset: 0, writable: true, executable: false, private: false };
    let ask = |request| Operation::Ask { thread, descriptor, request };
    let before = [
        Operation::Open { thread, descriptor, access: Access::ReadWrite },
        Operation::StartThread { thread, new: other },
        ask(Request::Size(1024)),
        Operation::Map { thread, descriptor, map, geometry },
        ask(Request::Enable(0)),
    ];
    let world = before.iter().fold(World::new(Linux::new(kernel)), |world, operation| {
        assert!(world.possible(operation));
        world.step(operation).swap_remove(0).1
    });
    let buffer = world.whole(thread, descriptor).expect("a buffer").0;
    assert_eq!(world.reached(), [buffer].into());
    let own = world.driver.recording(buffer).expect("it is enabled");
    let trace = |thread| Operation::Trace { thread, map, count: 0 };
    let work = Work::Worker;
    let touched = [
        (trace(thread), Touch::Own(own)),
        (trace(other), Touch::Others),
        (Operation::Background { thread: other, map, work, count: 0 }, Touch::Others),
        (Operation::Store { thread, map, word: 7 }, Touch::Word(511, 7)),
        (Operation::Load { thread, map }, Touch::Nothing),
        (ask(Request::Enable(0)), Touch::Nothing),
        (ask(Request::Disable(0)), Touch::Nothing),
        (Operation::Map { thread, descriptor, map: M(1), geometry }, Touch::Nothing),
        (Operation::Fork { thread, new: T(2) }, Touch::Nothing),
    ];
    for (operation, touch) in touched {
        assert_eq!(world.touch(&operation, buffer), touch, "{operation:?}");
    }
}

/// Sections go to the device with their handle, as many records as it has room for.
#[test]
fn sections_go_where_their_handle_is_and_fill_the_room() {
    let kernel = linux::Kernel { comparisons: true, bounds_count: true, local_and_remote: true };
    let (thread, other, map) = (T(0), T(1), M(0));
    let before = [
        Operation::StartThread { thread, new: other },
        Operation::Open { thread, descriptor: D(b'a'.into()), access: Access::ReadWrite },
    ];
    let begins = |script: &str| {
        let script: Vec<_> = script.split("; ").map(operation).collect();
        before.iter().chain(&script).fold(World::new(Linux::new(kernel)), |world, operation| {
            assert!(world.possible(operation));
            world.step(operation).swap_remove(0).1
        })
    };
    let after = |script: &str, thread, work, count| {
        let operation = Operation::Background { thread, map, work, count };
        begins(script).step(&operation).swap_remove(0).0
    };
    let remote = |rest: &str| format!("size a 512; map a 4096; remote a {rest}");
    let (worker, soft) = (Work::Worker, Work::SoftInterrupt);
    let (common, bus) = (remote("common=c1"), remote("bus area=2 common=c1"));
    assert_eq!(after(&common, thread, soft, 0), Outcome::Unchanged);
    assert_eq!(after(&common, other, worker, 0), Outcome::Unchanged);
    assert_eq!(after(&common, thread, worker, 0), Outcome::Grown(511));
    assert_eq!(after(&common, thread, worker, 509), Outcome::Counted(509, 511));
    assert_eq!(after(&common, thread, worker, 511), Outcome::Unchanged);
    assert_eq!(after(&common, thread, worker, 512), Outcome::Unchanged);
    assert_eq!(after(&bus, other, soft, 508), Outcome::Counted(508, 511));
    assert_eq!(after(&bus, thread, worker, 0), Outcome::Grown(8));
    assert_eq!(after(&bus, thread, worker, 510), Outcome::Counted(510, 511));
    let comparisons = remote("bus mode=1");
    assert_eq!(after(&comparisons, other, soft, 0), Outcome::Grown(127));
    assert_eq!(after(&comparisons, other, soft, 124), Outcome::Counted(124, 127));
    assert_eq!(after(&comparisons, other, worker, 0), Outcome::Unchanged);
}
