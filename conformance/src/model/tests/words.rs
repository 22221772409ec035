//! Parser for the scripts in rows.

use crate::model::{Call, D, Geometry, Handle, M, Memory, Operation, Remap, Remote, Request, T};

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
        "bus" => Handle::Bus,
        "ur" => Handle::UsbReserved,
        "cr" => Handle::CommonReserved,
        "unknown" => Handle::NoSubsystem,
        _ if word.starts_with('u') => Handle::Usb(number()),
        _ => Handle::Common(number()),
    }
}

/// A number, optionally shifted: `1<<32`.
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
            Some(("area", area)) => remote.area = number(area) as u32,
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

/// Parses one step of a script.
pub(super) fn operation(text: &str) -> Operation {
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
