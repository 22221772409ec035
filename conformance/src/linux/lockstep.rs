//! Operations on Linux.

use crate::errno::Result;
use crate::feature::Feature;
use crate::lockstep::generate::size;
use crate::raw::{Device, Gadget, Map, RootHub, Vhost, page_size, with_console_off};
use fastrand::Rng;
use kcov_model::linux::{BUS, GOOD, Kernel, Linux};
use kcov_model::{Call, Handle, Memory, Remap, Remote, Request, WORD, Work};
use kcov_sys::linux as sys;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::sysinfo::sysinfo;
use std::path::Path;
use std::sync::OnceLock;

/// The model.
pub(crate) type Driver = Linux;

/// The model of a kernel with these features.
pub(crate) fn driver(features: &[Feature]) -> std::result::Result<Driver, String> {
    if !features.contains(&Feature::Long64) {
        return Err("a program of 32 bits cannot pass all arguments".to_owned());
    }
    Ok(Linux::new(Kernel {
        comparisons: features.contains(&Feature::Comparisons),
        bounds_count: features.contains(&Feature::CmpBoundCheck),
        local_and_remote: features.contains(&Feature::LocalAndRemote),
        page: page_size() as u64,
        // The kernel allocates no more than it has.
        most_words: sysinfo().map_or(u64::MAX, |machine| machine.ram_total() / WORD),
    }))
}

/// The work that the kernel can do for a thread.
pub(crate) fn works(features: &[Feature]) -> Vec<Work> {
    let all = [(Feature::Vhost, Work::Worker), (Feature::Usb, Work::SoftInterrupt)];
    let there = all.into_iter().filter(|(feature, _)| features.contains(feature));
    there.map(|(_, work)| work).collect()
}

/// After operations, frames test whether work is collected.
pub(crate) const WORK_IS_QUICK: bool = true;
/// The weight of work among the operations.
pub(crate) const WORK_WEIGHT: u32 = 40;

/// Makes this process the reaper of orphaned processes, and keeps the root hub awake: a hub that
/// falls asleep or wakes up starts sections of its own.
pub(crate) fn prepare() -> Result<()> {
    if RootHub::present() {
        hub()?;
    }
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// Children share it, until they execute a program.
fn hub() -> Result<&'static RootHub> {
    static HUB: OnceLock<RootHub> = OnceLock::new();
    if let Some(hub) = HUB.get() {
        return Ok(hub);
    }
    let hub = RootHub::open()?;
    Ok(HUB.get_or_init(|| hub))
}

/// Nothing survives the processes of a run.
pub(crate) fn reset(_: &Path) -> Result<()> {
    Ok(())
}

/// Handles that are always refused: with a reserved bit, or of an unknown subsystem.
const USB_RESERVED: Handle = Handle(sys::KCOV_SUBSYSTEM_USB | 1 << 40 | 1);
const COMMON_RESERVED: Handle = Handle(sys::KCOV_SUBSYSTEM_COMMON | 1 << 40 | 1);
const NO_SUBSYSTEM: Handle = Handle(2 << 56 | 1);
/// An unknown ioctl number.
const UNKNOWN_REQUEST: u32 = 0x63ff;

/// The number of a handle in this run. Handles that a run leaves registered do not affect the next.
fn number(handle: Handle, run: u32) -> u64 {
    match handle {
        // None, and the first bus, which does not exist.
        Handle(0 | sys::KCOV_SUBSYSTEM_USB) => handle.0,
        BUS if RootHub::present() => sys::KCOV_SUBSYSTEM_USB | Gadget::bus(),
        BUS => sys::KCOV_SUBSYSTEM_USB | 1,
        // Far from bus numbers: 20 bits of the run and 10 of the handle.
        Handle(number) => number | 0x4000_0000 | u64::from(run & 0xf_ffff) << 10,
    }
}

/// Issues an ioctl.
pub(crate) fn ask(device: &Device, request: &Request, run: u32) -> Result<()> {
    match request {
        // The kernel logs a warning that looks like a fault.
        Request::Size(words) if *words == sys::kcov_init_trace_max(WORD) => {
            with_console_off(|| device.init_trace(*words))
        }
        Request::Size(words) => device.init_trace(*words),
        Request::Enable(mode) => device.enable(*mode),
        Request::Disable(argument) => device.disable_with(*argument),
        Request::RemoteEnable(remote) => remote_enable(device, remote, run),
        Request::SizeOfOtherWidth => device.request(sys::KCOV_INIT_TRACE32, 512),
        _ => device.request(UNKNOWN_REQUEST, 0),
    }
}

fn remote_enable(device: &Device, remote: &Remote, run: u32) -> Result<()> {
    let handles = remote.array();
    let count = u32::try_from(handles.len()).expect("a number of handles");
    let mut bytes = Vec::new();
    for half in [remote.mode, remote.area, count, 0] {
        bytes.extend(half.to_ne_bytes());
    }
    for handle in [remote.common].into_iter().chain(handles) {
        bytes.extend(number(handle, run).to_ne_bytes());
    }
    match remote.memory {
        Memory::Nowhere => device.remote_enable_at(0),
        Memory::Whole => device.remote_enable_at(bytes.as_ptr().expose_provenance()),
        Memory::WithoutEnd => {
            let (page, hole) = Map::page_before_hole()?;
            let readable = &bytes[..bytes.len() - 8];
            for (index, half) in readable.chunks_exact(4).enumerate() {
                let half = u32::from_ne_bytes(half.try_into().expect("four bytes"));
                page.store32(page_size() - readable.len() + 4 * index, half);
            }
            device.remote_enable_at(hole - readable.len())
        }
    }
}

/// Issues a system call that only this system's model has.
pub(crate) fn misuse(device: &Device, _: Call) -> Result<()> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    Ok(epoll.add(device, EpollEvent::new(EpollFlags::EPOLLIN, 0))?)
}

/// Remaps a mapping.
pub(crate) fn remap(map: &Map, how: Remap) -> Result<()> {
    match how {
        Remap::Grow => map.remap(map.bytes() + page_size(), libc::MREMAP_MAYMOVE),
        Remap::LeaveOld => map.remap(map.bytes(), libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP),
    }
}

/// Lets the kernel work for this thread, and waits for it.
pub(crate) fn work(work: Work) -> Result<()> {
    match work {
        Work::Worker => Vhost::new()?.work(),
        Work::SoftInterrupt => hub()?.work()?,
    }
    Ok(())
}

/// Lets the kernel do this work. If it lacks memory for a section, it logs a warning that looks like
/// a fault.
pub(crate) fn quietly<T>(driver: &Driver, work: Work, body: impl FnOnce() -> T) -> T {
    let is_loud = work == Work::Worker && driver.is_starved();
    if is_loud { with_console_off(body) } else { body() }
}

/// The other system calls to try.
pub(crate) const MISUSES: &[Call] =
    &[Call::Read, Call::Write, Call::PositionedRead, Call::PositionedWrite, Call::Seek, Call::Poll];
/// The remappings to try.
pub(crate) const REMAPS: &[Remap] = &[Remap::Grow, Remap::LeaveOld];
/// The weight of changes of protection among the operations.
pub(crate) const PROTECT_WEIGHT: u32 = 20;
/// Offsets other than 0.
pub(crate) const OFFSETS: &[i64] = &[8, 4096, 8192, -4096];
/// Whether a mapping can be executable depends on the mount options.
pub(crate) const EXECUTABLE: bool = false;

/// A random ioctl.
pub(crate) fn request(rng: &mut Rng, driver: &Driver) -> Request {
    match rng.u8(0..100) {
        0..25 => {
            let most = sys::kcov_init_trace_max(WORD);
            size(rng, most, driver.kernel().most_words < most)
        }
        25..50 => Request::Enable(match rng.u8(0..12) {
            0 => 2,
            1 => 1 << 32,
            2 => u64::MAX,
            3..7 => 1,
            _ => 0,
        }),
        50..75 => Request::Disable(match rng.u8(0..12) {
            0 => 1,
            1 => 1 << 32,
            _ => 0,
        }),
        75..97 => Request::RemoteEnable(remote(rng, driver.kernel().most_words < 1 << 28)),
        97 => Request::SizeOfOtherWidth,
        _ => Request::Unknown,
    }
}

/// The plainest good request of the same kind.
pub(crate) fn good(request: &Request) -> Option<Request> {
    Some(match request {
        Request::Size(_) => Request::Size(512),
        Request::Enable(_) => Request::Enable(0),
        Request::Disable(_) => Request::Disable(0),
        Request::RemoteEnable(_) => Request::RemoteEnable(Remote::new(Handle(0), Vec::new())),
        _ => return None,
    })
}

/// `fails` if no memory suffices for large areas.
fn remote(rng: &mut Rng, fails: bool) -> Remote {
    let usb = |rng: &mut Rng| Handle(sys::KCOV_SUBSYSTEM_USB | rng.u64(0..GOOD));
    let common = |rng: &mut Rng| Handle(sys::KCOV_SUBSYSTEM_COMMON | rng.u64(1..=GOOD));
    let handle = |rng: &mut Rng| match rng.u8(0..24) {
        0 => Handle(0),
        1 => common(rng),
        2 => USB_RESERVED,
        3 => COMMON_RESERVED,
        4 => NO_SUBSYSTEM,
        5..12 => BUS,
        _ => usb(rng),
    };
    let number = if rng.u8(0..3) == 0 { 0 } else { rng.usize(1..4) };
    let mut handles = Vec::new();
    for _ in 0..number {
        handles.push(handle(rng));
    }
    Remote {
        mode: match rng.u8(0..12) {
            0 => 2,
            1 => u32::MAX,
            2..5 => 1,
            _ => 0,
        },
        // KASAN reports areas of less than 3 words: remote.section.area-below-three-words.
        area: match rng.u8(0..8) {
            0 | 1 => 3,
            2 => 4,
            // Bytes that overflow in 32 bits, and no memory for them.
            3 if fails && rng.u8(0..6) == 0 => [1 << 28, 1 << 29, u32::MAX][rng.usize(0..3)],
            _ => 512,
        },
        common: match rng.u8(0..24) {
            0 => USB_RESERVED,
            1 => COMMON_RESERVED,
            2 => NO_SUBSYSTEM,
            3 => usb(rng),
            4..10 => Handle(0),
            _ => common(rng),
        },
        handles,
        fill: match rng.u8(0..32) {
            0 => 256,
            1 => 257,
            _ => 0,
        },
        memory: match rng.u8(0..24) {
            0 => Memory::Nowhere,
            1 => Memory::WithoutEnd,
            _ => Memory::Whole,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::Linux;
    use crate::lockstep::generate::Generator;
    use kcov_model::linux::Kernel;
    use kcov_model::{Driver as _, Errno, World};
    use std::collections::BTreeSet;

    /// Conditions that exclude each other.
    const APART: &[[&str; 2]] = &[
        ["an unknown mode", "comparison mode, which is not built in"],
        [
            "the first bad handle of the array is not a USB handle",
            "the first bad handle of the array is registered",
        ],
        ["the common handle has a subsystem or a reserved bit", "the common handle is registered"],
    ];

    /// Whatever two errors of a request can apply at once do so, so the driver's order matters.
    #[test]
    fn every_two_errors_of_a_request_meet() {
        let mut wanted = BTreeSet::new();
        for (_, rules) in Linux::order() {
            for (index, first) in rules.iter().enumerate() {
                for second in &rules[index + 1..] {
                    let (first, second) = (first.reason, second.reason);
                    if first.errno != second.errno && !APART.contains(&[first.when, second.when]) {
                        wanted.insert((first, second));
                    }
                }
            }
        }
        let errnos: BTreeSet<Errno> = wanted.iter().map(|(_, second)| second.errno).collect();
        assert!(wanted.len() > 30 && errnos.len() > 5, "{wanted:#?}");
        let kernel = Kernel { comparisons: false, most_words: 1 << 20, ..Kernel::LATEST };
        for seed in 0..40 {
            let mut generator = Generator::new(seed, vec![]);
            let mut world = World::new(Linux::new(kernel));
            for _ in 0..5000 {
                let operation = generator.operation(&world);
                let held = world.refusals(&operation);
                for (index, first) in held.iter().enumerate() {
                    for second in &held[index + 1..] {
                        wanted.remove(&(**first, **second));
                    }
                }
                world = world.step(&operation).remove(0).1;
            }
            if wanted.is_empty() {
                return;
            }
        }
        panic!("never at once: {wanted:#?}");
    }
}
