//! The measurements.

use super::uring::Workers;
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::remote::linux::Remote;
use kcov::{BufferSize, ChildBuffer, Completeness, Device};
use kcov_signal::{KernelText, NoveltyMap};
use kcov_sys::linux::{KCOV_DISABLE, KCOV_ENABLE, KCOV_INIT_TRACE, KCOV_PATH, KCOV_TRACE_PC};
use nix::libc;
use nix::mount::{MsFlags, mount, umount};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{ErrorKind, Write as _};
use std::net::UdpSocket;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const USAGE: &str = "usage: cost alone ROUNDS, or cost ROUNDS [PROGRAM ARGUMENT...]";
/// Nanoseconds of a burst that is not traced. It is short, so most bursts are not interrupted.
const BURST: f64 = 200e3;
const ENABLED: &str = "the device is enabled";

pub fn measure() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let first = words.next().ok_or(USAGE)?;
    if first == "alone" {
        let rounds = words.next().ok_or(USAGE)?.parse()?;
        println!("| call | ns |\n|---|---|");
        for (name, call) in calls()? {
            let [alone] = best(rounds, [&mut |passes| time(passes, &call)]);
            println!("| {name} | {alone:.0} |");
        }
        return Ok(());
    }
    let rounds = first.parse()?;
    print_calls(rounds)?;
    print_lengths(rounds)?;
    print_sizes(rounds);
    print_resets(rounds);
    print_remote(rounds)?;
    let program: Vec<String> = words.collect();
    if program.is_empty() { Ok(()) } else { print_program(rounds, &program) }
}

/// Runs a number of passes and returns the nanoseconds of one.
type Way<'a> = &'a mut dyn FnMut(u32) -> f64;

/// The passes before a burst, so every way begins with warm caches.
fn warming(passes: u32) -> u32 {
    passes.div_ceil(4)
}

fn time(passes: u32, mut pass: impl FnMut()) -> f64 {
    (0..warming(passes)).for_each(|_| pass());
    let start = Instant::now();
    (0..passes).for_each(|_| pass());
    start.elapsed().as_nanos() as f64 / f64::from(passes)
}

/// The best of the rounds for each way. The ways take turns. The first one is not traced.
fn best<const N: usize>(rounds: u32, mut ways: [Way<'_>; N]) -> [f64; N] {
    let one = (0..5).map(|_| ways[0](1)).fold(f64::INFINITY, f64::min);
    let passes = (BURST / one).clamp(1.0, 4096.0) as u32;
    let mut best = [f64::INFINITY; N];
    for _ in 0..rounds {
        for (best, way) in best.iter_mut().zip(&mut ways) {
            *best = best.min(way(passes));
        }
    }
    best
}

type Call = (&'static str, Box<dyn Fn()>);

fn calls() -> Result<Vec<Call>, Box<dyn Error>> {
    let directory = std::env::temp_dir().join("cost");
    fs::create_dir_all(&directory)?;
    let file = directory.join("file");
    let zero = File::open("/dev/zero")?;
    let (output, input) = nix::unistd::pipe()?;
    let (output, input) = (File::from(output), File::from(input));
    let (left, right) = UnixStream::pair()?;
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    udp.connect(udp.local_addr()?)?;
    let message = [1; 64];
    Ok(vec![
        ("getppid", Box::new(getppid)),
        ("read, 64 bytes of /dev/zero", Box::new(move || pull(&zero))),
        (
            "write and read, pipe",
            Box::new(move || {
                (&input).write_all(&message).expect("room");
                pull(&output);
            }),
        ),
        (
            "write and read, UNIX socket",
            Box::new(move || {
                (&left).write_all(&message).expect("room");
                pull(&right);
            }),
        ),
        ("open and close, /dev/null", Box::new(|| drop(File::open("/dev/null").expect("opened")))),
        (
            "send and receive, UDP",
            Box::new(move || {
                udp.send(&message).expect("sent");
                udp.recv(&mut [0; 64]).expect("received");
            }),
        ),
        ("statx, procfs", Box::new(stat)),
        ("mmap, touch, munmap: 16 pages", Box::new(map)),
        (
            "create, write 4 KiB, unlink: tmpfs",
            Box::new(move || {
                fs::write(&file, [0; 4096]).expect("written");
                fs::remove_file(&file).expect("removed");
            }),
        ),
        ("list /proc", Box::new(list)),
        (
            "mount and unmount, tmpfs",
            Box::new(move || {
                let nothing = None::<&str>;
                mount(nothing, &directory, Some("tmpfs"), MsFlags::empty(), nothing)
                    .expect("mounted");
                umount(&directory).expect("unmounted");
            }),
        ),
        ("fork and wait", Box::new(child)),
    ])
}

fn getppid() {
    black_box(parent_id());
}

fn list() {
    black_box(fs::read_dir("/proc").expect("a directory").count());
}

fn pull(mut from: impl std::io::Read) {
    from.read_exact(&mut [0; 64]).expect("64 bytes");
}

fn stat() {
    fs::metadata("/proc/self/stat").expect("a file of procfs");
}

fn map() {
    let length = NonZeroUsize::new(16 * 4096).expect("a length");
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: the mapping is new.
    let start = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE) };
    let start = start.expect("mapped");
    // SAFETY: the mapping has this size and is zeroed, and this function alone uses it.
    let pages = unsafe { start.cast::<[[u8; 4096]; 16]>().as_mut() };
    pages.iter_mut().for_each(|page| page[0] = black_box(1));
    // SAFETY: nothing refers to the mapping any more.
    unsafe { munmap(start, length.get()) }.expect("unmapped");
}

fn child() {
    // SAFETY: the child ends at once.
    match unsafe { fork() }.expect("forked") {
        // SAFETY: `_exit` runs no exit handlers.
        ForkResult::Child => unsafe { libc::_exit(0) },
        ForkResult::Parent { child } => drop(waitpid(child, None).expect("it ends")),
    }
}

/// A burst that a session on the device records, with a reset before each pass, and the number of
/// records of the last pass.
fn traced<M: Mode>(
    device: &mut Device,
    mode: M,
    passes: u32,
    pass: impl Fn(),
    records: &mut usize,
) -> f64 {
    let mut session = device.enable(mode).expect(ENABLED);
    let nanos = time(passes, || {
        session.reset();
        pass();
    });
    let recorded = session.disable().expect(ENABLED);
    assert_eq!(recorded.trace().completeness(), Completeness::Complete, "the buffer is too small");
    *records = recorded.trace().len();
    nanos
}

fn print_calls(rounds: u32) -> Result<(), Box<dyn Error>> {
    // One call forks.
    // SAFETY: the children use no device.
    let open = || unsafe { Device::builder().not_inherited() }.open();
    let [mut of_pcs, mut of_cmps, mut of_work] = [open()?, open()?, open()?];
    let [mut checked, mut walked] = [open()?, open()?];
    let by_hand = ByHand::open()?;
    let mut map = NoveltyMap::new(KernelText::read()?.ranges()?);
    let mut of_library = Vec::new();
    println!(
        "| call | ns | PCs | comparisons | PC mode | comparison mode | remote | ns per PC | ns per comparison |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, call) in calls()? {
        let (mut pcs, mut cmps) = (0, 0);
        let best = best(
            rounds,
            [
                &mut |passes| time(passes, &call),
                &mut |passes| traced(&mut of_pcs, TracePc, passes, &call, &mut pcs),
                &mut |passes| traced(&mut of_cmps, TraceCmp, passes, &call, &mut cmps),
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
        let [alone, pc, cmp, remote, check, walk, hand] = best;
        let per = |nanos: f64, records: usize| (nanos - alone) / records.max(1) as f64;
        println!(
            "| {name} | {alone:.0} | {pcs} | {cmps} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            pc / alone,
            cmp / alone,
            remote / alone,
            per(pc, pcs),
            per(cmp, cmps),
        );
        of_library.push(format!("| {name} | {:.2} | {:.3} |", check / alone, walk / hand));
    }
    println!("\n| call | reset, call, `has_new` | library / ioctls by hand |\n|---|---|---|");
    println!("{}\n", of_library.join("\n"));
    Ok(())
}

/// A device without the library.
struct ByHand {
    file: File,
    buffer: &'static [AtomicU64],
}

impl ByHand {
    fn open() -> Result<ByHand, Box<dyn Error>> {
        // Children inherit it.
        const WORDS: usize = 1 << 16;
        let file = File::options().read(true).write(true).open(KCOV_PATH)?;
        ask(&file, KCOV_INIT_TRACE, WORDS as u64);
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let length = NonZeroUsize::new(8 * WORDS).expect("a length");
        // SAFETY: the mapping is new.
        let start = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, &file, 0) }?;
        // SAFETY: the mapping has this size and stays for ever. Besides the kernel, only atomic
        // operations access it.
        let buffer =
            unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>().as_ptr(), WORDS) };
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
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request.into(), argument) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

fn print_lengths(rounds: u32) -> Result<(), Box<dyn Error>> {
    println!("| calls between resets | PCs | ns per PC | comparisons | ns per comparison |");
    println!("|---|---|---|---|---|");
    let open = |words| Device::builder().size(BufferSize::words(words)).open();
    let [mut of_pcs, mut of_cmps] = [open(1 << 21)?, open(1 << 21)?];
    for calls in [1, 10, 100, 1000] {
        let work = || (0..calls).for_each(|_| stat());
        let (mut pcs, mut cmps) = (0, 0);
        let [alone, pc, cmp] = best(
            rounds,
            [
                &mut |passes| time(passes, work),
                &mut |passes| traced(&mut of_pcs, TracePc, passes, work, &mut pcs),
                &mut |passes| traced(&mut of_cmps, TraceCmp, passes, work, &mut cmps),
            ],
        );
        let per = |nanos: f64, records: usize| (nanos - alone) / records as f64;
        println!("| {calls} | {pcs} | {:.2} | {cmps} | {:.2} |", per(pc, pcs), per(cmp, cmps));
    }
    // The hooks that find the buffer full.
    let [mut of_pcs, mut of_cmps] = [open(512)?, open(512)?];
    let [alone, pc, cmp] = best(
        rounds,
        [
            &mut |passes| time(passes, stat),
            &mut |passes| full(&mut of_pcs, TracePc, passes),
            &mut |passes| full(&mut of_cmps, TraceCmp, passes),
        ],
    );
    println!(
        "\nA full buffer: {:.2} in PC mode, {:.2} in comparison mode\n",
        pc / alone,
        cmp / alone
    );
    Ok(())
}

fn full<M: Mode>(device: &mut Device, mode: M, passes: u32) -> f64 {
    let session = device.enable(mode).expect(ENABLED);
    (0..512).for_each(|_| stat());
    assert_eq!(session.trace().completeness(), Completeness::Truncated);
    time(passes, stat)
}

/// In relation to a call that is not traced.
fn print_sizes(rounds: u32) {
    println!(
        "| words | memory | open, map, close | enable, disable | reset, getppid |\n|---|---|---|---|---|"
    );
    for bits in [12, 15, 18, 20, 22] {
        let open = || {
            let size = BufferSize::words(1 << bits);
            Device::builder().size(size).open().expect("memory")
        };
        let [mut of_enable, mut of_call] = [open(), open()];
        let best = best(
            rounds,
            [
                &mut |passes| time(passes, getppid),
                &mut |passes| time(passes.min(8), || drop(open())),
                &mut |passes| time(passes, || drop(open_session(&mut of_enable))),
                &mut |passes| traced(&mut of_call, TracePc, passes, getppid, &mut 0),
            ],
        );
        let [opened, enabled, called] = [1, 2, 3].map(|way| best[way] / best[0]);
        let kib = 8 << bits >> 10;
        println!("| {} | {kib} KiB | {opened:.0} | {enabled:.1} | {called:.2} |", 1 << bits);
    }
    println!();
}

fn open_session(device: &mut Device) -> kcov::Session<TracePc, &mut Device> {
    device.enable(TracePc).expect(ENABLED)
}

fn print_resets(rounds: u32) {
    println!("| between two calls | getppid | statx |\n|---|---|---|");
    let [one, two] = [resets(rounds, getppid), resets(rounds, stat)];
    for (index, way) in ["`reset`", "disable and enable", "a new device"].into_iter().enumerate() {
        println!("| {way} | {:.2} | {:.2} |", one[index], two[index]);
    }
    println!();
}

/// Each way to start with an empty buffer, in relation to the call alone.
fn resets(rounds: u32, call: impl Fn() + Copy) -> [f64; 3] {
    let open = || Device::open().expect("opened");
    let [mut first, mut second] = [open(), open()];
    let [alone, reset, enable, open] = best(
        rounds,
        [
            &mut |passes| time(passes, call),
            &mut |passes| traced(&mut first, TracePc, passes, call, &mut 0),
            &mut |passes| {
                time(passes, || {
                    let _session = open_session(&mut second);
                    call();
                })
            },
            &mut |passes| {
                time(passes.min(64), || {
                    let mut device = open();
                    let _session = open_session(&mut device);
                    call();
                })
            },
        ],
    );
    [reset, enable, open].map(|nanos| nanos / alone)
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

type Shared<M> = Arc<Mutex<ChildBuffer<M>>>;

fn print_program(rounds: u32, program: &[String]) -> Result<(), Box<dyn Error>> {
    fn open<M: Mode>(mode: M) -> Result<Shared<M>, kcov::Error> {
        let device = Device::builder().size(BufferSize::words(1 << 20)).open()?;
        Ok(Arc::new(Mutex::new(device.into_child_buffer(mode)?)))
    }
    fn report<M: Mode>(name: &str, ratio: f64, buffer: &Shared<M>) -> Result<(), Box<dyn Error>> {
        let buffer = buffer.lock().map_err(|_| "a panic")?;
        let trace = buffer.trace()?;
        println!("| {name} | {ratio:.3} | {} | {:?} |", trace.len(), trace.completeness());
        Ok(())
    }
    let (of_pcs, of_cmps) = (open(TracePc)?, open(TraceCmp)?);
    let [alone, pc, cmp] = best(
        rounds,
        [&mut |_| run::<TracePc>(program, None), &mut |_| run(program, Some(&of_pcs)), &mut |_| {
            run(program, Some(&of_cmps))
        }],
    );
    println!("| `{}` | ratio | records | |\n|---|---|---|---|", program.join(" "));
    println!("| not enabled | {:.1} ms | | |", alone / 1e6);
    report("PC mode", pc / alone, &of_pcs)?;
    report("comparison mode", cmp / alone, &of_cmps)
}

/// The nanoseconds of a program, which is traced from before its execution until it ends.
fn run<M: Mode>(program: &[String], buffer: Option<&Shared<M>>) -> f64 {
    let buffer = buffer.cloned();
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    let enable = move || {
        if let Some(buffer) = &buffer {
            let mut buffer = buffer.try_lock().map_err(|_| ErrorKind::WouldBlock)?;
            std::mem::forget(buffer.enable()?);
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing and waits for nothing, so it may run after a fork.
    unsafe { command.pre_exec(enable) };
    let start = Instant::now();
    let status = command.status().expect("the program starts");
    assert!(status.success(), "{status}");
    start.elapsed().as_nanos() as f64
}
