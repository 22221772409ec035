//! The tables that only Linux has.

use super::bursts::{best, time, warming};
use super::calls::{calls, getppid, stat};
use super::modes::{Burst, ENABLED, WORDS, compare, mode, open};
use super::uring::Workers;
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::remote::linux::Remote;
use kcov::{BufferSize, Completeness, Device};
use kcov_signal::{KernelText, NoveltyMap};
use kcov_sys::linux::{KCOV_DISABLE, KCOV_ENABLE, KCOV_INIT_TRACE, KCOV_PATH, KCOV_TRACE_PC};
use nix::libc;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap};
use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU64, Ordering};

pub fn print_others(rounds: u32) -> Result<(), Box<dyn Error>> {
    print_library(rounds)?;
    print_lengths(rounds);
    print_sizes(rounds);
    print_remote(rounds)
}

fn print_library(rounds: u32) -> Result<(), Box<dyn Error>> {
    let [mut of_work, mut checked, mut walked] = [open(WORDS), open(WORDS), open(WORDS)];
    let by_hand = ByHand::open()?;
    let map = NoveltyMap::new(KernelText::read()?.ranges()?);
    println!("| call | remote | reset, call, `has_new` | library / ioctls by hand |");
    println!("|---|---|---|---|");
    for (name, call) in calls()? {
        let [alone, remote, check, walk, hand] = best(
            rounds,
            [
                &mut |passes| time(passes, &call),
                &mut |passes| {
                    let remote = Remote::new().any_common();
                    let _session = of_work.enable_remote(TracePc, &remote).expect(ENABLED);
                    time(passes, &call)
                },
                &mut |passes| {
                    let mut session = checked.enable(TracePc).expect(ENABLED);
                    call();
                    map.merge(session.trace());
                    time(passes, || {
                        session.reset();
                        call();
                        black_box(map.has_new(session.trace()));
                    })
                },
                &mut |passes| {
                    let mut session = walked.enable(TracePc).expect(ENABLED);
                    call();
                    time(passes, || {
                        session.reset();
                        call();
                        black_box(session.trace().iter().fold(0, |sum, pc| sum ^ pc.address()));
                    })
                },
                &mut |passes| by_hand.time(passes, &call),
            ],
        );
        let (remote, check, walk) = (remote / alone, check / alone, walk / hand);
        println!("| {name} | {remote:.2} | {check:.2} | {walk:.3} |");
    }
    println!();
    Ok(())
}

/// A device without the library.
struct ByHand {
    file: File,
    buffer: &'static [AtomicU64],
}

impl ByHand {
    fn open() -> Result<ByHand, Box<dyn Error>> {
        let file = File::options().read(true).write(true).open(KCOV_PATH)?;
        ask(&file, KCOV_INIT_TRACE, WORDS);
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let length = NonZeroUsize::new(8 * WORDS as usize).expect("a length");
        // SAFETY: the mapping is new.
        let start = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, &file, 0) }?;
        // SAFETY: as for `open`: the children end at once.
        unsafe { madvise(start, length.get(), MmapAdvise::MADV_DONTFORK) }?;
        // SAFETY: the mapping has this size and stays for ever. Besides the kernel, only atomic
        // operations access it.
        let buffer = unsafe {
            std::slice::from_raw_parts(start.cast::<AtomicU64>().as_ptr(), WORDS as usize)
        };
        Ok(ByHand { file, buffer })
    }

    fn time(&self, passes: u32, call: impl Fn()) -> f64 {
        ask(&self.file, KCOV_ENABLE, KCOV_TRACE_PC.into());
        let nanos = time(passes, || {
            self.buffer[0].store(0, Ordering::Relaxed);
            call();
            let count = self.buffer[0].load(Ordering::Relaxed) as usize;
            let records = self.buffer[1..].iter().take(count);
            black_box(records.fold(0, |sum, pc| sum ^ pc.load(Ordering::Relaxed)));
        });
        ask(&self.file, KCOV_DISABLE, 0);
        nanos
    }
}

fn ask(file: &File, request: u32, argument: u64) {
    // SAFETY: these requests take their argument by value.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

fn print_lengths(rounds: u32) {
    const WORDS: u64 = 1 << 21;
    println!("| calls between resets | PCs | ns per PC | comparisons | ns per comparison |");
    println!("|---|---|---|---|---|");
    for calls in [1, 10, 100, 1000] {
        let cells = [mode(TracePc, WORDS), mode(TraceCmp, WORDS)].map(|burst| {
            let (alone, nanos, records) =
                compare(rounds, &|| (0..calls).for_each(|_| stat()), &burst);
            format!(" {records} | {:.2} |", (nanos - alone) / records as f64)
        });
        println!("| {calls} |{}", cells.concat());
    }
    let [pc, cmp] = [full(TracePc), full(TraceCmp)].map(|burst| {
        let (alone, nanos, _) = compare(rounds, &stat, &burst);
        nanos / alone
    });
    println!("\nA full buffer: {pc:.2} in PC mode, {cmp:.2} in comparison mode\n");
}

/// A burst whose hooks find the buffer full.
fn full<M: Mode + 'static>(mode: M) -> Burst {
    Box::new(move |passes, call| {
        let mut device = open(512);
        let session = device.enable(mode).expect(ENABLED);
        (0..512).for_each(|_| call());
        assert_eq!(session.trace().completeness(), Completeness::Truncated);
        (time(passes, call), session.trace().len())
    })
}

/// In relation to a call that is not traced.
fn print_sizes(rounds: u32) {
    println!("| words | memory | open, map, close | enable, disable | reset, getppid |");
    println!("|---|---|---|---|---|");
    for bits in [12, 15, 18, 20, 22] {
        let words = 1 << bits;
        // As a fuzzer opens it: a device that children inherit.
        let open = || Device::builder().size(BufferSize::words(words)).open().expect("memory");
        let mut device = open();
        let [alone, opened, enabled] = best(
            rounds,
            [
                &mut |passes| time(passes, getppid),
                &mut |passes| time(passes.min(2), || drop(open())),
                &mut |passes| time(passes, || drop(device.enable(TracePc).expect(ENABLED))),
            ],
        );
        let (opened, enabled) = (opened / alone, enabled / alone);
        let (alone, traced, _) = compare(rounds, &getppid, &mode(TracePc, words));
        let (called, kib) = (traced / alone, words >> 7);
        println!("| {words} | {kib} KiB | {opened:.0} | {enabled:.1} | {called:.2} |");
    }
    println!();
}

type Work<'a> = &'a dyn Fn(&mut Workers);

fn print_remote(rounds: u32) -> Result<(), Box<dyn Error>> {
    println!(
        "| operation of a worker | us | PCs | comparisons | not its handle | PC mode | comparison mode |"
    );
    println!("|---|---|---|---|---|---|---|");
    let version = File::open("/proc/version")?;
    let works: [(&str, Work<'_>); 3] = [
        ("nothing", &|ring| ring.nothing().expect("done")),
        ("read, procfs", &|ring| ring.read(&version).expect("read")),
        ("mkdir, which fails", &|ring| drop(ring.make_directory(c"/proc"))),
    ];
    let [mut of_others, mut of_pcs, mut of_cmps] =
        [Device::open()?, Device::open()?, Device::open()?];
    for (name, work) in works {
        let (mut pcs, mut cmps) = (0, 0);
        let [alone, others, pc, cmp] = best(
            rounds,
            [
                &mut |passes| {
                    let mut ring = Workers::new().expect("a ring");
                    work(&mut ring);
                    time(passes, || work(&mut ring))
                },
                &mut |passes| {
                    // The ring does not inherit the handle.
                    let mut ring = Workers::new().expect("a ring");
                    let remote = Remote::new().any_common();
                    let session = of_others.enable_remote(TracePc, &remote).expect(ENABLED);
                    work(&mut ring);
                    let nanos = time(passes, || work(&mut ring));
                    assert!(session.trace().is_empty());
                    nanos
                },
                &mut |passes| collected(&mut of_pcs, TracePc, passes, work, &mut pcs),
                &mut |passes| collected(&mut of_cmps, TraceCmp, passes, work, &mut cmps),
            ],
        );
        let ratios = [others, pc, cmp].map(|nanos| format!("{:.2}", nanos / alone)).join(" | ");
        println!("| {name} | {:.1} | {pcs} | {cmps} | {ratios} |", alone / 1e3);
    }
    println!();
    Ok(())
}

/// A burst of a worker's operations, with the number of records of one.
fn collected<M: Mode>(
    device: &mut Device,
    mode: M,
    passes: u32,
    work: impl Fn(&mut Workers),
    records: &mut usize,
) -> f64 {
    let session = device.enable_remote(mode, &Remote::new().any_common()).expect(ENABLED);
    let mut ring = Workers::new().expect("a ring");
    work(&mut ring);
    let before = session.trace().len();
    let nanos = time(passes, || work(&mut ring));
    let trace = session.trace();
    assert_eq!(trace.completeness(), Completeness::Complete, "the buffer is too small");
    *records = (trace.len() - before) / (passes + warming(passes)) as usize;
    nanos
}
