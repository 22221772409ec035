//! Every error that the registry names is what the model comes to as well.
//!
//! A row has a claim's id and the operations that provoke its error, in words: who does it if not
//! the first thread, what, with which device, and with what. Devices `a` and `b` are open, as are
//! `r` for reading and `w` for writing only.

mod rows_linux;
mod rows_netbsd;

use super::linux::{self, Linux};
use super::netbsd::{self, NetBsd};
use super::{
    Access, Call, D, Driver, Geometry, Handle, M, Memory, Operation, Outcome, Remap, Remote,
    Request, T, World,
};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Registry {
    claim: Vec<Claim>,
}

/// What matters here; the errors stay names, of both systems on either.
#[derive(Deserialize)]
struct Claim {
    id: String,
    errno: Option<String>,
    status: String,
}

fn errors(files: [&str; 2]) -> BTreeMap<String, String> {
    let parse = |text: &str| toml::from_str::<Registry>(text).expect("a registry").claim;
    let checked = files.into_iter().flat_map(parse).filter(|claim| claim.status == "checked");
    checked.filter_map(|claim| Some((claim.id, claim.errno?))).collect()
}

fn thread(word: &str) -> T {
    T(word.strip_prefix('t').and_then(|n| n.parse().ok()).expect("a thread"))
}

fn descriptor(word: &str) -> D {
    D(word.bytes().next().expect("a letter").into())
}

fn handle(word: &str) -> Handle {
    let number = || word[1..].parse().expect("a number");
    match word {
        "z" => Handle::Zero,
        "ur" => Handle::UsbReserved,
        "cr" => Handle::CommonReserved,
        "unknown" => Handle::NoSubsystem,
        _ if word.starts_with('u') => Handle::Usb(number()),
        _ => Handle::Common(number()),
    }
}

/// A number, with its power of two if it has one.
fn number(word: &str) -> u64 {
    let part = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{text:?}"));
    match word.split_once("<<") {
        Some((left, right)) => part(left) << part(right),
        None => part(word),
    }
}

fn remote(words: &[&str]) -> Remote {
    let mut remote = Remote {
        mode: 0,
        area: 512,
        common: Handle::Zero,
        handles: Vec::new(),
        fill: 0,
        memory: Memory::Whole,
    };
    for word in words {
        match word.split_once('=') {
            Some(("mode", mode)) => remote.mode = number(mode) as u32,
            Some(("fill", fill)) => remote.fill = number(fill) as u32,
            Some(("common", common)) => remote.common = handle(common),
            _ if *word == "nowhere" => remote.memory = Memory::Nowhere,
            _ if *word == "cut" => remote.memory = Memory::WithoutEnd,
            _ => remote.handles.push(handle(word)),
        }
    }
    remote
}

fn geometry(words: &[&str]) -> Geometry {
    let mut geometry =
        Geometry { bytes: 0, offset: 0, writable: true, executable: false, private: false };
    for word in words {
        match word.split_once('=') {
            Some(("offset", offset)) => {
                let (sign, offset) = match offset.strip_prefix('-') {
                    Some(rest) => (-1, rest),
                    None => (1, offset),
                };
                geometry.offset = sign * number(offset) as i64;
            }
            _ if *word == "x" => geometry.executable = true,
            _ if *word == "read" => geometry.writable = false,
            _ => geometry.bytes = number(word),
        }
    }
    geometry
}

fn operation(text: &str) -> Operation {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let thread_named = words[0].strip_suffix(':').map(thread);
    if thread_named.is_some() {
        words.remove(0);
    }
    let by = thread_named.unwrap_or(T(0));
    let (verb, rest) = words.split_first().expect("a verb");
    match *verb {
        "thread" => return Operation::StartThread { thread: by, new: thread(rest[0]) },
        "fork" => return Operation::Fork { thread: by, new: thread(rest[0]) },
        "exit" => return Operation::Exit { thread: by },
        "exec" => return Operation::Execute { thread: by, keep: true },
        "grow" => return Operation::Remap { thread: by, map: M(0), how: Remap::Grow },
        "leave" => return Operation::Remap { thread: by, map: M(0), how: Remap::LeaveOld },
        _ => {}
    }
    let (device, rest) = rest.split_first().expect("a device");
    let device = descriptor(device);
    let request = match *verb {
        "size" => Request::Size(number(rest[0])),
        "enable" => Request::Enable(number(rest[0])),
        "disable" => Request::Disable(rest.first().map_or(0, |word| number(word))),
        "remote" => Request::RemoteEnable(remote(rest)),
        "attach" => Request::Attach(number(rest[0]), number(rest[1])),
        "detach" => Request::Detach,
        "unknown" => Request::Unknown,
        "size32" => Request::SizeOfOtherWidth,
        "size-unreadable" => Request::SizeUnreadable,
        "enable-unreadable" => Request::EnableUnreadable,
        "attach-unreadable" => Request::AttachUnreadable,
        "dup" => {
            return Operation::Duplicate {
                thread: by,
                descriptor: device,
                new: descriptor(rest[0]),
            };
        }
        "close" => return Operation::Close { thread: by, descriptor: device },
        "map" => {
            let geometry = geometry(rest);
            return Operation::Map { thread: by, descriptor: device, map: M(0), geometry };
        }
        misuse => {
            let call = match misuse {
                "read" => Call::Read,
                "write" => Call::Write,
                "pread" => Call::PositionedRead,
                "pwrite" => Call::PositionedWrite,
                "seek" => Call::Seek,
                "poll" => Call::Poll,
                "stat" => Call::Stat,
                "nonblock" => Call::Nonblocking,
                "sync" => Call::Sync,
                "truncate" => Call::Truncate,
                other => panic!("no verb {other:?}"),
            };
            return Operation::Misuse { thread: by, descriptor: device, call };
        }
    };
    Operation::Ask { thread: by, descriptor: device, request }
}

/// What the last of the operations comes to, the others being done.
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

/// Claims whose error comes from elsewhere than the driver and the calls around it.
const OUTSIDE: &[&str] = &["open.unprivileged-is-refused", "open.not-built-in-is-refused"];

fn compare<R: Driver>(
    registry: &BTreeMap<String, String>,
    rows: &[(&str, &str)],
    driver: impl Fn(&str) -> R,
) {
    for (id, errno) in registry {
        let scripts: Vec<_> = rows.iter().filter(|row| row.0 == id).collect();
        // The model never runs out of memory either.
        let outside = OUTSIDE.contains(&id.as_str()) || id.starts_with("faults.");
        assert!(outside == scripts.is_empty(), "{id}: {} rows", scripts.len());
        for (_, script) in scripts {
            let outcome = last(driver(id), script);
            assert!(
                matches!(outcome, Outcome::Refused(name) if name == errno),
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
    let registry = errors([
        include_str!("../../../claims/linux-document.toml"),
        include_str!("../../../claims/linux-driver.toml"),
    ]);
    compare(&registry, rows_linux::LINUX, |id| {
        Linux::new(linux::Kernel {
            comparisons: !id.ends_with("comparisons-not-built-is-refused"),
            bounds_count: true,
            // Claims about kernels on which a thread has one instance at most.
            local_and_remote: !matches!(
                id,
                "enable.busy-if-thread-collects-remotely" | "remote.busy-if-thread-traced-locally"
            ),
        })
    });
}

#[test]
fn netbsd_errors_are_those_of_the_registry() {
    let registry = errors([
        include_str!("../../../claims/netbsd-document.toml"),
        include_str!("../../../claims/netbsd-driver.toml"),
    ]);
    // Claims about the interface of NetBSD 9 only.
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

/// The kernel may have recorded over it, however short the time was.
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
