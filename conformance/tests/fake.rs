//! The fake kernel that the crate has for tests agrees with the models of the drivers: random requests
//! on several devices in several threads, refused with the errno that the model says.
//!
//! The models are compared with running kernels by `cargo vm lockstep`.

use fastrand::Rng;
use kcov::fake::{Kernel, RawDevice};
use kcov_conformance::model::{
    Access, D, Driver, Geometry, Handle, Instance, M, Memory, Operation, Outcome, Remote, Request,
    T, WORD, World, linux, netbsd, page,
};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

const SEQUENCES: u64 = 1500;
const STEPS: usize = 100;
/// Descriptors and threads at once: few, so that they meet.
const DEVICES: u32 = 4;
const THREADS: u32 = 3;

/// The errno of a name.
fn errno(name: &str, is_linux: bool) -> i32 {
    let all = if is_linux { kcov_sys::errno::linux::ALL } else { kcov_sys::errno::netbsd::ALL };
    let errno = all.iter().find(|errno| errno.0 == name);
    errno.unwrap_or_else(|| panic!("no request gives {name} here")).1
}

/// A thread of this process, which does what it is told.
struct Thread {
    work: mpsc::Sender<Box<dyn FnOnce() + Send>>,
    handle: JoinHandle<()>,
}

impl Thread {
    fn start() -> Thread {
        let (work, told) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let handle = thread::spawn(move || told.iter().for_each(|work| work()));
        Thread { work, handle }
    }

    fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> R {
        let (send, result) = mpsc::channel();
        let work = move || send.send(work()).expect("somebody waits");
        self.work.send(Box::new(work)).expect("the thread is there");
        result.recv().expect("the work does not panic")
    }

    fn end(self) {
        drop(self.work);
        self.handle.join().expect("no panic");
    }
}

/// The fake kernel, by the model's names.
struct Fake {
    kernel: Kernel,
    is_linux: bool,
    devices: BTreeMap<D, Arc<RawDevice>>,
    threads: BTreeMap<T, Thread>,
}

impl Fake {
    fn ask(device: &RawDevice, request: &Request) -> Result<(), kcov::Error> {
        match request {
            Request::Size(words) => device.set_size(*words),
            Request::Enable(mode) => device.enable(*mode as u32),
            Request::Disable(_) => device.disable(),
            Request::Attach(subsystem, id) => device.attach(*subsystem, *id),
            Request::Detach => device.detach(),
            Request::RemoteEnable(remote) => {
                let fill = (0..remote.fill).map(|n| Handle::Usb(linux::FILL + n as u16));
                let handles = remote.handles.iter().copied().chain(fill).map(number);
                let handles: Vec<u64> = handles.collect();
                device.enable_remote(remote.mode, remote.area, &handles, number(remote.common))
            }
            other => panic!("not asked: {other:?}"),
        }
    }

    /// Does it; the errno if it is refused.
    fn step(&mut self, operation: &Operation) -> Option<i32> {
        let done = match operation {
            Operation::Open { descriptor, .. } => {
                let opened = self.kernel.open_raw();
                opened.map(|device| drop(self.devices.insert(*descriptor, Arc::new(device))))
            }
            Operation::Close { thread, descriptor } => {
                let device = self.devices.remove(descriptor).expect("an open device");
                self.threads[thread].run(move || drop(device));
                Ok(())
            }
            Operation::Ask { thread, descriptor, request } => {
                let (device, request) = (self.devices[descriptor].clone(), request.clone());
                self.threads[thread].run(move || Fake::ask(&device, &request))
            }
            Operation::Map { descriptor, geometry, .. } => {
                self.devices[descriptor].map(geometry.bytes as usize)
            }
            Operation::Unmap { .. } => Ok(()),
            Operation::StartThread { new, .. } => {
                self.threads.insert(*new, Thread::start());
                Ok(())
            }
            Operation::EndThread { thread } => {
                self.threads.remove(thread).expect("a thread").end();
                Ok(())
            }
            other => panic!("not done: {other:?}"),
        };
        done.err().map(|error| error.raw_os_error().expect("an errno"))
    }
}

/// A handle as the request has it.
fn number(handle: Handle) -> u64 {
    match handle {
        Handle::Zero => 0,
        Handle::Common(number) => u64::from(number) + 1,
        Handle::Usb(number) => 0x0100_0000_0000_0000 | u64::from(number),
        Handle::Bus => 0x0100_0000_0000_ffff,
        Handle::UsbReserved => 0x0100_0001_0000_0001,
        Handle::CommonReserved => 0x0000_0001_0000_0001,
        Handle::NoSubsystem => 0x0200_0000_0000_0001,
    }
}

fn pick<X: Copy>(rng: &mut Rng, all: &[X]) -> X {
    all[rng.usize(..all.len())]
}

/// A word for a size: most often a good one.
fn size(rng: &mut Rng) -> u64 {
    match rng.u8(..8) {
        0 => pick(rng, &[0, 1, 2, 3, 511, 513, 1000, 1025]),
        1 => pick(rng, &[1 << 28, 1 << 61, u64::MAX]),
        // The greatest of NetBSD, and one more: on Linux good ones.
        2 if rng.u8(..16) == 0 => pick(rng, &[256 << 10, (256 << 10) + 1]),
        _ => pick(rng, &[512, 1024]),
    }
}

fn remote(rng: &mut Rng) -> Remote {
    let one = |rng: &mut Rng| match rng.u8(..12) {
        0 => pick(rng, &[Handle::Zero, Handle::UsbReserved, Handle::NoSubsystem]),
        1 => Handle::Common(rng.u16(..3)),
        _ => Handle::Usb(rng.u16(..6)),
    };
    let handles = (0..rng.usize(..4)).map(|_| one(rng)).collect();
    let common = match rng.u8(..8) {
        0 => pick(rng, &[Handle::CommonReserved, Handle::NoSubsystem, Handle::Usb(1)]),
        1 | 2 => Handle::Zero,
        _ => Handle::Common(rng.u16(..3)),
    };
    let fill = if rng.u8(..32) == 0 { pick(rng, &[1, 200, 253, 256, 257]) } else { 0 };
    let mode = pick(rng, &[0, 0, 0, 1, 1, 2]);
    Remote { mode, area: 64, common, handles, fill, memory: Memory::Whole }
}

fn request(rng: &mut Rng, is_linux: bool) -> Request {
    match rng.u8(..20) {
        0..4 => Request::Size(size(rng)),
        4..10 => Request::Enable(if is_linux {
            pick(rng, &[0, 0, 0, 1, 1, 2, 0xffff_ffff])
        } else {
            pick(rng, &[1, 1, 1, 2, 2, 0, 3, 0xffff_ffff])
        }),
        10..14 => Request::Disable(0),
        14..17 if is_linux => Request::RemoteEnable(remote(rng)),
        14..17 => {
            let id = pick(rng, &[0, 0, 1, 7, 8, 1 << 32]);
            Request::Attach(if rng.u8(..12) == 0 { 1 } else { 0 }, id)
        }
        17 | 18 if !is_linux => Request::Detach,
        17 => Request::Attach(0, 0),
        18 => Request::Detach,
        _ => Request::RemoteEnable(remote(rng)),
    }
}

/// The next operation. Threads other than the first come and go.
fn operation(rng: &mut Rng, step: usize, is_linux: bool) -> Operation {
    let (thread, descriptor) = (T(rng.u32(..THREADS)), D(rng.u32(..DEVICES)));
    match rng.u8(..16) {
        0 | 1 => Operation::Open { thread, descriptor, access: Access::ReadWrite },
        2 => Operation::Close { thread, descriptor },
        3 => {
            let words = size(rng).min(512 << 10);
            let bytes =
                (words * WORD + pick(rng, &[0, 0, 0, 8, page()])).saturating_sub(rng.u64(..2));
            let geometry =
                Geometry { bytes, offset: 0, writable: true, executable: false, private: false };
            Operation::Map { thread, descriptor, map: M(step as u32), geometry }
        }
        4 => Operation::StartThread { thread: T(0), new: T(rng.u32(1..THREADS)) },
        5 if rng.bool() => Operation::EndThread { thread: T(rng.u32(1..THREADS)) },
        _ => Operation::Ask { thread, descriptor, request: request(rng, is_linux) },
    }
}

/// The threads that are traced are those that the model has as traced.
fn check_who_is_traced<R: Driver>(fake: &Fake, driver: &R, opened: u32, log: &[String]) {
    for (name, thread) in &fake.threads {
        let mut recordings = (0..opened).filter_map(|number| driver.recording(Instance(number)));
        let expected = recordings.any(|recording| recording.thread == Some(*name));
        let kernel = fake.kernel.clone();
        let is_traced = thread.run(move || kernel.is_traced());
        assert_eq!(is_traced, expected, "{name:?} after\n{}", log.join("\n"));
    }
}

/// Plays a sequence to both. How many operations were done, and how many refused.
fn play<R: Driver>(seed: u64, driver: R, kernel: &Kernel, is_linux: bool) -> (usize, usize) {
    let mut rng = Rng::with_seed(seed);
    let mut world = World::new(driver);
    let threads = [(T(0), Thread::start())].into();
    let mut fake = Fake { kernel: kernel.clone(), is_linux, devices: BTreeMap::new(), threads };
    let (mut log, mut opened, mut refused) = (Vec::new(), 0, 0);
    for step in 0..STEPS {
        let operation = operation(&mut rng, step, is_linux);
        if !world.possible(&operation) {
            continue;
        }
        let seen = fake.step(&operation);
        log.push(format!("{operation:?}: {seen:?}"));
        let is_seen = |outcome: &Outcome| match outcome {
            Outcome::Done => seen.is_none(),
            Outcome::Refused(name) => seen == Some(errno(name, fake.is_linux)),
            other => panic!("the model says {other:?}"),
        };
        let allowed = world.step(&operation);
        let outcomes: Vec<_> = allowed.iter().map(|(outcome, _)| outcome.clone()).collect();
        let next = allowed.into_iter().find(|(outcome, _)| is_seen(outcome));
        let Some((_, next)) = next else {
            panic!("seed {seed}: the model says {outcomes:?} of the last of\n{}", log.join("\n"))
        };
        world = next;
        refused += usize::from(seen.is_some());
        opened += u32::from(matches!(operation, Operation::Open { .. }));

        // A round trip to each thread, so not after each step.
        if step % 20 == 19 {
            check_who_is_traced(&fake, &world.driver, opened, &log);
        }
    }
    let done = log.len();
    fake.devices.clear();
    fake.threads.into_values().for_each(Thread::end);
    assert_eq!(kernel.open_devices(), 0, "seed {seed}");
    (done, refused)
}

fn play_all<R: Driver>(driver: &R, kernel: impl Fn() -> Kernel, is_linux: bool) {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..SEQUENCES {
        let (more, of_these) = play(seed, driver.clone(), &kernel(), is_linux);
        done += more;
        refused += of_these;
    }
    // Sequences in which all is refused, or nothing, would prove little.
    let share = refused as f64 / done as f64;
    assert!(done > 40_000 && (0.1..0.9).contains(&share), "{refused} of {done} refused");
    println!("{done} operations, {refused} of them refused");
}

fn linux(comparisons: bool) -> linux::Linux {
    let kernel = linux::Kernel { comparisons, bounds_count: true, local_and_remote: true };
    linux::Linux::new(kernel)
}

#[test]
fn linux_refuses_as_its_model_does() {
    play_all(&linux(true), Kernel::linux, true);
}

#[test]
fn linux_without_comparisons_refuses_as_its_model_does() {
    play_all(&linux(false), || Kernel::linux().without_comparisons(), true);
}

#[test]
fn netbsd_refuses_as_its_model_does() {
    let driver = netbsd::NetBsd::new(netbsd::Kernel { attaches: true, ports: 8 });
    play_all(&driver, Kernel::netbsd, false);
}
