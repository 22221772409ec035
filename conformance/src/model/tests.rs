//! Every error that the registry names is what the model comes to as well.
//!
//! A row has a claim's id and the operations that provoke its error, in words: who does it if not
//! the first thread, what, with which device, and with what. Devices `a` and `b` are open, as are
//! `r` for reading and `w` for writing only.

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
        include_str!("../../claims/linux-document.toml"),
        include_str!("../../claims/linux-driver.toml"),
    ]);
    compare(&registry, LINUX, |id| {
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
        include_str!("../../claims/netbsd-document.toml"),
        include_str!("../../claims/netbsd-driver.toml"),
    ]);
    // Claims about the interface of NetBSD 9 only.
    const NINE: &[&str] = &[
        "open.truncate-is-refused-as-invalid",
        "request.remote-is-refused-as-unknown",
        "enable.size-comes-before-mode",
        "enable.device-state-comes-before-mode",
        "enable.thread-comes-before-mode",
    ];
    compare(&registry, NETBSD, |id| {
        NetBsd::new(netbsd::Kernel { attaches: !NINE.contains(&id), ports: 3 })
    });
}

const LINUX: &[(&str, &str)] = &[
    ("open.read-is-refused", "read a"),
    ("open.write-is-refused", "write a"),
    ("open.positioned-read-is-refused", "pread a"),
    ("open.positioned-write-is-refused", "pwrite a"),
    ("open.seek-is-refused", "seek a"),
    ("open.poll-is-refused", "poll a"),
    ("size.zero-is-refused", "size a 0"),
    ("size.one-is-refused", "size a 1"),
    ("size.above-greatest-is-refused", "size a 268435456"),
    ("size.far-above-greatest-is-refused", "size a 1<<32"),
    ("size.second-time-is-refused", "size a 512; size a 512"),
    ("size.second-time-other-size-is-refused", "size a 512; size a 1024"),
    ("size.second-time-while-enabled-is-refused", "size a 512; enable a 0; size a 512"),
    ("size.second-time-after-disable-is-refused", "size a 512; enable a 0; disable a; size a 512"),
    ("size.range-comes-before-state", "size a 512; size a 1"),
    ("map.before-sizing-is-refused", "map a 4096"),
    ("map.shorter-is-refused", "size a 1024; map a 4096"),
    ("map.longer-is-refused", "size a 512; map a 8192"),
    ("map.offset-is-refused", "size a 512; map a 4096 offset=4096"),
    ("map.negative-offset-is-refused", "size a 512; map a 4096 offset=-4096"),
    ("map.negative-offset-is-refused", "map w 4096 offset=-4096"),
    ("map.part-of-a-page-is-refused", "size a 513; map a 4096"),
    ("map.part-of-a-page-is-refused", "size a 513; map a 8192"),
    ("map.write-to-read-only-descriptor-is-refused", "size r 512; map r 4096"),
    ("map.write-only-descriptor-is-refused", "size w 512; map w 4096 read"),
    ("map.growing-is-refused", "size a 512; map a 4096; grow"),
    ("map.remapping-that-leaves-the-old-is-refused", "size a 512; map a 4096; leave"),
    ("request.unknown-before-sizing-is-refused", "unknown a"),
    ("request.unknown-when-sized-is-refused", "size a 512; unknown a"),
    ("request.unknown-while-enabled-is-refused", "size a 512; enable a 0; unknown a"),
    (
        "request.unknown-from-other-thread-is-refused",
        "thread t1; size a 512; enable a 0; t1: unknown a",
    ),
    ("request.size-for-other-word-width-is-refused", "size32 a"),
    ("enable.before-sizing-is-refused", "enable a 0"),
    ("enable.already-enabled-is-refused", "size a 512; enable a 0; enable a 0"),
    (
        "enable.already-enabled-through-duplicate-is-refused",
        "size a 512; dup a d; enable a 0; enable d 0",
    ),
    (
        "enable.enabled-by-other-thread-is-refused",
        "thread t1; size a 512; t1: enable a 0; enable a 0",
    ),
    ("enable.enabled-remotely-is-refused", "size a 512; remote a; enable a 0"),
    ("enable.enabled-remotely-is-refused", "thread t1; size a 512; remote a; t1: enable a 0"),
    ("enable.busy-if-thread-already-enabled", "size a 512; size b 512; enable a 0; enable b 0"),
    ("enable.busy-if-thread-collects-remotely", "size a 512; size b 512; remote a; enable b 0"),
    ("enable.device-state-comes-before-thread", "size a 512; enable a 0; enable b 0"),
    ("enable.unknown-mode-is-refused", "size a 512; enable a 2"),
    ("enable.internal-number-of-mode-is-refused", "size a 512; enable a 3"),
    ("enable.mode-beyond-32-bits-is-refused", "size a 512; enable a 1<<32"),
    ("enable.device-state-comes-before-mode", "enable a 1<<32"),
    ("enable.thread-comes-before-mode", "size a 512; size b 512; enable a 0; enable b 2"),
    ("enable.comparisons-not-built-is-refused", "size a 512; enable a 1"),
    ("disable.nonzero-argument-is-refused", "size a 512; enable a 0; disable a 1"),
    ("disable.argument-beyond-32-bits-is-refused", "size a 512; enable a 0; disable a 1<<32"),
    ("disable.before-sizing-is-refused", "disable a"),
    ("disable.not-enabled-is-refused", "size a 512; disable a"),
    ("disable.second-time-is-refused", "size a 512; enable a 0; disable a; disable a"),
    ("disable.other-device-is-refused", "size a 512; size b 512; enable a 0; disable b"),
    ("disable.other-thread-is-refused", "thread t1; size a 512; enable a 0; t1: disable a"),
    (
        "disable.device-of-other-traced-thread-is-refused",
        "thread t1; size a 512; size b 512; enable a 0; t1: enable b 0; t1: disable a",
    ),
    ("disable.forked-child-is-refused", "size a 512; enable a 0; fork t1; t1: disable a"),
    (
        "close.while-enabled-keeps-the-thread-busy",
        "size a 512; size b 512; enable a 0; close a; enable b 0",
    ),
    ("fork.child-of-enabled-parent-is-refused", "size a 512; enable a 0; fork t1; t1: enable a 0"),
    (
        "exec.enabled-by-new-program-is-refused",
        "size a 512; fork t1; t1: enable a 0; t1: exec; enable a 0",
    ),
    ("remote.unreadable-argument-is-refused", "size a 512; remote a nowhere"),
    ("remote.unreadable-argument-is-refused", "size a 512; remote a cut"),
    ("remote.unreadable-handles-is-refused", "size a 512; remote a u1 cut"),
    ("remote.too-many-handles-is-refused", "size a 512; remote a fill=257"),
    ("remote.argument-is-read-before-state", "remote a nowhere"),
    ("remote.argument-is-read-before-state", "size a 512; enable a 0; remote a cut"),
    (
        "remote.number-of-handles-comes-before-state",
        "size a 512; size b 512; remote a; remote b fill=257",
    ),
    ("remote.before-sizing-is-refused", "remote a"),
    ("remote.enabled-locally-is-refused", "size a 512; enable a 0; remote a"),
    ("remote.enabled-locally-is-refused", "thread t1; size a 512; enable a 0; t1: remote a"),
    ("remote.enabled-remotely-is-refused", "size a 512; remote a; remote a"),
    ("remote.busy-if-thread-collects-remotely", "size a 512; size b 512; remote a; remote b"),
    ("remote.busy-if-thread-traced-locally", "size a 512; size b 512; enable a 0; remote b"),
    ("remote.device-state-comes-before-thread", "size a 512; remote a; remote b"),
    ("remote.thread-comes-before-mode", "size a 512; size b 512; remote a; remote b mode=2"),
    ("remote.unknown-mode-is-refused", "size a 512; remote a mode=2"),
    ("remote.comparisons-not-built-is-refused", "size a 512; remote a mode=1"),
    (
        "remote.mode-comes-before-handles",
        "thread t1; size a 512; size b 512; t1: remote b u1; remote a mode=2 u1",
    ),
    ("remote.handle.reserved-bytes-are-refused", "size a 512; remote a ur"),
    ("remote.handle.reserved-bytes-of-common-are-refused", "size a 512; remote a common=cr"),
    ("remote.handle.usb-subsystem-as-common-is-refused", "size a 512; remote a common=u1"),
    (
        "remote.handle.common-registered-by-other-process-is-refused",
        "size a 512; size b 512; fork t1; t1: remote b common=c1; remote a common=c1",
    ),
    ("remote.handle.unknown-subsystem-is-refused", "size a 512; remote a unknown"),
    ("remote.handle.unknown-subsystem-of-common-is-refused", "size a 512; remote a common=unknown"),
    ("remote.handle.common-subsystem-in-array-is-refused", "size a 512; remote a c1"),
    ("remote.handle.zero-in-array-is-refused", "size a 512; remote a z"),
    ("remote.handle.twice-in-array-is-refused", "size a 512; remote a u1 u1"),
    (
        "remote.handle.registered-by-other-thread-is-refused",
        "thread t1; size a 512; size b 512; t1: remote b u1; remote a u1",
    ),
    (
        "remote.handle.registered-by-other-process-is-refused",
        "size a 512; size b 512; fork t1; t1: remote b u1; remote a u1",
    ),
    (
        "remote.handle.array-comes-before-common",
        "thread t1; size a 512; size b 512; t1: remote b u1; remote a u1 common=unknown",
    ),
    (
        "remote.handle.first-bad-one-decides",
        "thread t1; size a 512; size b 512; t1: remote b u1; remote a z u1",
    ),
    (
        "remote.release.disable-by-other-thread-is-refused",
        "thread t1; size a 512; remote a; t1: disable a",
    ),
    (
        "remote.release.disable-by-forked-child-is-refused",
        "size a 512; remote a; fork t1; t1: disable a",
    ),
    (
        "remote.release.close-keeps-handles",
        "thread t1; size a 512; size b 512; remote a u1; close a; t1: remote b u1",
    ),
];

const NETBSD: &[(&str, &str)] = &[
    ("open.read-is-refused", "read a"),
    ("open.write-is-refused", "write a"),
    ("open.positioned-read-is-refused", "pread a"),
    ("open.positioned-write-is-refused", "pwrite a"),
    ("open.seek-is-refused", "seek a"),
    ("open.stat-is-refused", "stat a"),
    ("open.nonblocking-is-refused", "nonblock a"),
    ("open.sync-is-refused", "sync a"),
    ("open.truncate-is-refused", "truncate a"),
    ("open.truncate-is-refused-as-invalid", "truncate a"),
    ("size.zero-is-refused", "size a 0"),
    ("size.one-is-refused", "size a 1"),
    ("size.above-greatest-is-refused", "size a 262145"),
    ("size.far-above-greatest-is-refused", "size a 1<<32"),
    ("size.second-time-is-refused", "size a 512; size a 512"),
    ("size.second-time-other-size-is-refused", "size a 512; size a 1024"),
    ("size.second-time-while-enabled-is-refused", "size a 512; enable a 1; size a 512"),
    ("size.second-time-after-disable-is-refused", "size a 512; enable a 1; disable a; size a 512"),
    ("size.range-comes-before-state", "size a 512; size a 1"),
    ("size.enabled-comes-before-range", "size a 512; enable a 1; size a 1"),
    ("size.unreadable-argument-is-refused", "size-unreadable a"),
    ("map.before-sizing-is-refused", "map a 4096"),
    ("map.longer-is-refused", "size a 512; map a 8192"),
    ("map.offset-beyond-is-refused", "size a 512; map a 4096 offset=4096"),
    ("map.executable-is-refused", "size a 512; map a 4096 x"),
    ("map.negative-offset-is-refused", "size a 512; map a 4096 offset=-4096"),
    ("map.above-greatest-length-is-refused", "map a 2101248"),
    ("map.above-greatest-offset-is-refused", "size a 512; map a 4096 offset=2101248"),
    ("map.greatest-offset-is-refused", "size a 512; map a 4096 offset=2097152"),
    ("map.zero-length-is-refused", "size a 512; map a 0"),
    ("request.unknown-before-sizing-is-refused", "unknown a"),
    ("request.unknown-when-sized-is-refused", "size a 512; unknown a"),
    ("request.unknown-while-enabled-is-refused", "size a 512; enable a 1; unknown a"),
    (
        "request.unknown-from-other-thread-is-refused",
        "thread t1; size a 512; enable a 1; t1: unknown a",
    ),
    ("request.remote-is-refused-as-unknown", "attach a 0 0"),
    ("request.remote-is-refused-as-unknown", "detach a"),
    ("enable.none-binds-the-thread", "size a 512; size b 512; enable a 0; enable b 1"),
    ("enable.none-binds-the-device", "thread t1; size a 512; enable a 0; t1: enable a 1"),
    ("enable.before-sizing-is-refused", "enable a 1"),
    ("enable.already-enabled-is-refused", "size a 512; enable a 1; enable a 1"),
    (
        "enable.already-enabled-through-duplicate-is-refused",
        "size a 512; dup a d; enable a 1; enable d 1",
    ),
    (
        "enable.enabled-by-other-thread-is-refused",
        "thread t1; size a 512; t1: enable a 1; enable a 1",
    ),
    ("enable.busy-if-thread-already-enabled", "size a 512; size b 512; enable a 1; enable b 1"),
    ("enable.thread-comes-before-size", "size a 512; enable a 1; enable b 1"),
    ("enable.mode-comes-first", "enable a 3"),
    ("enable.mode-comes-first", "size a 512; enable a 1; enable a 3"),
    ("enable.size-comes-before-mode", "enable a 3"),
    ("enable.device-state-comes-before-mode", "size a 512; enable a 1; enable a 3"),
    ("enable.thread-comes-before-mode", "size a 512; size b 512; enable a 1; enable b 3"),
    ("enable.unreadable-argument-is-refused", "size a 512; enable-unreadable a"),
    ("enable.unknown-mode-is-refused", "size a 512; enable a 3"),
    ("disable.before-sizing-is-refused", "disable a"),
    ("disable.not-enabled-is-refused", "size a 512; disable a"),
    ("disable.second-time-is-refused", "size a 512; enable a 1; disable a; disable a"),
    ("disable.other-device-is-refused", "size a 512; size b 512; enable a 1; disable b"),
    ("disable.other-thread-is-refused", "thread t1; size a 512; enable a 1; t1: disable a"),
    (
        "disable.device-of-other-traced-thread-is-refused",
        "thread t1; size a 512; size b 512; enable a 1; t1: enable b 1; t1: disable a",
    ),
    ("disable.forked-child-is-refused", "size a 512; enable a 1; fork t1; t1: disable a"),
    (
        "close.while-enabled-keeps-the-thread-busy",
        "size a 512; size b 512; enable a 1; close a; enable b 1",
    ),
    (
        "close.while-enabled-nobody-can-disable",
        "size a 512; size b 512; enable a 1; close a; disable b",
    ),
    ("fork.child-of-enabled-parent-is-refused", "size a 512; enable a 1; fork t1; t1: enable a 1"),
    (
        "exec.enabled-by-new-program-is-refused",
        "size a 512; fork t1; t1: enable a 1; t1: exec; enable a 1",
    ),
    ("remote.unknown-mode-is-refused", "attach a 0 1; enable a 3"),
    ("remote.enabled-remotely-is-refused", "attach a 0 1; enable a 1; enable a 1"),
    ("remote.enabled-remotely-is-refused", "attach a 0 1; attach b 0 1; enable a 1; enable b 1"),
    (
        "remote.enabled-by-other-process-is-refused",
        "fork t1; attach a 0 1; t1: attach b 0 1; t1: enable b 1; enable a 1",
    ),
    ("remote.not-enabled-disable-is-refused", "attach a 0 1; disable a"),
    ("remote.attach.unknown-source-is-refused", "attach a 1 0"),
    ("remote.attach.unknown-source-is-refused", "attach a 0 99"),
    ("remote.attach.unreadable-argument-is-refused", "attach-unreadable a"),
    ("remote.attach.while-enabled-is-refused", "size a 512; enable a 1; attach a 0 1"),
    ("remote.attach.enabled-comes-before-source", "size a 512; enable a 1; attach a 1 0"),
    ("remote.attach.detach-when-not-attached-is-refused", "detach a"),
    ("remote.attach.detach-while-enabled-is-refused", "size a 512; enable a 1; detach a"),
    (
        "remote.release.any-attached-may-disable",
        "thread t1; attach a 0 1; attach b 0 1; enable a 1; t1: disable b; disable a",
    ),
    (
        "remote.release.other-process-may-disable",
        "attach a 0 1; enable a 1; fork t1; t1: disable a; disable a",
    ),
    (
        "remote.release.detach-disables",
        "attach a 0 1; attach b 0 1; enable a 1; detach a; disable b",
    ),
    (
        "remote.release.detach-of-other-disables",
        "attach a 0 1; attach b 0 1; enable a 1; detach b; disable a",
    ),
    ("remote.release.close-disables", "attach a 0 1; attach b 0 1; enable a 1; close a; disable b"),
    (
        "remote.release.close-of-other-disables",
        "attach a 0 1; attach b 0 1; enable a 1; close b; disable a",
    ),
    (
        "remote.release.process-exit-of-other-disables",
        "attach a 0 1; fork t1; close b; t1: attach b 0 1; enable a 1; t1: exit; disable a",
    ),
];
