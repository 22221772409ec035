//! Scripts with the outcome of each operation, in the vocabulary's debug form.

use kcov_model::linux::{self, Linux};
use kcov_model::netbsd::{self, NetBsd};
use kcov_model::{Driver, Handle, Instance, Mode, Operation, Origin, Outcome, Place, Touch, World};

/// `T(0)` opens `D(0)` and `D(1)` and starts `T(1)`; both devices get a size.
const START: &str = "
    Open { thread: T(0), descriptor: D(0), access: ReadWrite } -> Done
    Open { thread: T(0), descriptor: D(1), access: ReadWrite } -> Done
    StartThread { thread: T(0), new: T(1) } -> Done
    Ask { thread: T(0), descriptor: D(0), request: Size(512) } -> Done
    Ask { thread: T(0), descriptor: D(1), request: Size(512) } -> Done";

/// The world after a script. Short forms: `0 1 Enable(0)` is an ioctl of `T(0)` to `D(1)`.
#[track_caller]
fn play<R: Driver + Clone>(mut world: World<R>, script: &str) -> World<R> {
    for line in script.lines().filter(|line| !line.trim().is_empty()) {
        let (operation, expected) = line.trim().split_once(" -> ").expect(line);
        let mut words = operation.splitn(3, ' ');
        let operation = match words.next().and_then(|word| word.parse::<u32>().ok()) {
            Some(thread) => {
                let [descriptor, request] =
                    [words.next(), words.next()].map(|word| word.expect(line));
                format!(
                    "Ask {{ thread: T({thread}), descriptor: D({descriptor}), request: {request} }}"
                )
            }
            None => operation.to_owned(),
        };
        let read: Operation = operation.parse().expect(line);
        assert_eq!(format!("{read:?}"), operation, "the debug form is read back");
        assert!(world.possible(&read), "{line}");
        let (outcome, next) = world.step(&read).swap_remove(0);
        assert_eq!(outcome, expected.parse().expect(line), "{line}");
        world = next;
    }
    world
}

fn linux() -> World<Linux> {
    play(World::new(Linux::new(linux::Kernel::LATEST)), START)
}

fn netbsd(attaches: bool) -> World<NetBsd> {
    let kernel = netbsd::Kernel { attaches, ..netbsd::Kernel::LATEST };
    play(World::new(NetBsd::new(kernel)), START)
}

/// If several errors apply, the driver's order decides.
#[test]
fn the_first_error_decides() {
    let world = play(
        linux(),
        "0 0 Size(1) -> Refused(EINVAL)
        1 1 Enable(0) -> Done
        0 0 Enable(2) -> Refused(EINVAL)
        0 0 Enable(0) -> Done
        0 1 Enable(0) -> Refused(EINVAL)
        Open { thread: T(0), descriptor: D(2), access: WriteOnly } -> Done
        0 2 Enable(0) -> Refused(EINVAL)
        0 2 Size(512) -> Done
        0 2 Enable(2) -> Refused(EBUSY)
        Map { thread: T(0), descriptor: D(2), map: M(0), geometry: Geometry { bytes: 4096, \
         offset: -4096, writable: true, executable: false, private: false } } -> Refused(EOVERFLOW)
        Map { thread: T(0), descriptor: D(2), map: M(0), geometry: Geometry { bytes: 100000, \
         offset: 0, writable: true, executable: false, private: false } } -> Refused(EACCES)",
    );
    let remote = |handles: &str, rest: &str, outcome: &str| {
        let handles = format!("handles: [{handles}], {rest}");
        let remote = format!("Remote {{ mode: 0, area: 512, common: 0x7, {handles} }}");
        play(world.clone(), &format!("0 2 RemoteEnable({remote}) -> {outcome}"))
    };
    let usb = "0x100000000000001";
    remote(usb, "fill: 0, memory: WithoutEnd", "Refused(EFAULT)");
    remote(usb, "fill: 256, memory: WithoutEnd", "Refused(EINVAL)");
    remote(usb, "fill: 256, memory: Nowhere", "Refused(EFAULT)");
    remote(&format!("{usb}, {usb}, 0x7"), "fill: 0, memory: Whole", "Refused(EEXIST)");
    remote(&format!("{usb}, 0x7, {usb}"), "fill: 0, memory: Whole", "Refused(EINVAL)");
    remote(usb, "fill: 0, memory: Whole", "Done");
    let small = linux::Kernel { most_words: 1 << 20, ..linux::Kernel::LATEST };
    let small = play(World::new(Linux::new(small)), START);
    play(small, "0 0 Size(268435455) -> Refused(ENOMEM)\n0 0 Size(268435456) -> Refused(EINVAL)");

    let enabled = "0 0 Enable(1) -> Done\n0 0 Size(1) -> Refused(EBUSY)";
    let ten = play(netbsd(true), enabled);
    play(
        ten,
        "0 0 Enable(3) -> Refused(EINVAL)
        Open { thread: T(0), descriptor: D(2), access: ReadWrite } -> Done
        0 2 Enable(1) -> Refused(EBUSY)
        0 1 Size(1) -> Refused(EINVAL)
        1 2 Enable(1) -> Refused(ENOBUFS)
        0 0 Attach(1, 0) -> Refused(EEXIST)
        0 2 Attach(1, 0) -> Refused(ENOENT)
        0 0 Detach -> Refused(EEXIST)",
    );
    play(
        play(netbsd(false), enabled),
        "0 0 Enable(3) -> Refused(EBUSY)
        0 1 Enable(3) -> Refused(EBUSY)
        1 1 Enable(3) -> Refused(EINVAL)
        0 0 Attach(0, 0) -> Refused(EINVAL)",
    );
}

const MAP: &str = "Map { thread: T(0), descriptor: D(0), map: M(0), geometry: Geometry { \
    bytes: 4096, offset: 0, writable: true, executable: false, private: false } } -> Done\n";

/// The kernel may have overwritten the word, however short the recording was.
#[test]
fn a_word_that_is_stored_while_its_buffer_is_recorded_into_may_be_lost() {
    let store = "Store { thread: T(0), map: M(0), word: 7 } -> Done\n";
    let load = "Load { thread: T(0), map: M(0) } -> ";
    let (enable, disable) = ("0 0 Enable(0) -> Done\n", "0 0 Disable(0) -> Done\n");
    let world = play(linux(), &format!("{MAP}{load}Word(0)\n{store}{load}Word(7)"));
    let world = play(world, &format!("{enable}{store}{disable}{load}Anything"));
    play(world, &format!("{store}{load}Word(7)"));
}

/// The effect of each operation on buffers, and who may record meanwhile.
#[test]
fn only_what_looks_at_the_count_touches_a_buffer() {
    let world = play(linux(), &format!("{MAP}0 0 Enable(0) -> Done"));
    let buffer = Instance(0);
    let own = world.driver.recording(buffer).expect("it is enabled");
    for (operation, touch) in [
        ("Trace { thread: T(0), map: M(0), count: 0 }", Touch::Own(own)),
        ("Trace { thread: T(1), map: M(0), count: 0 }", Touch::Others),
        ("Background { thread: T(1), map: M(0), work: Worker, count: 0 }", Touch::Others),
        ("Store { thread: T(0), map: M(0), word: 7 }", Touch::Word(511, 7)),
        ("Load { thread: T(0), map: M(0) }", Touch::Nothing),
        ("Ask { thread: T(0), descriptor: D(0), request: Disable(0) }", Touch::Nothing),
        ("Fork { thread: T(0), new: T(2) }", Touch::Nothing),
    ] {
        let read = operation.parse().expect(operation);
        assert_eq!(world.touch(&read, buffer), touch, "{operation}");
    }
}

/// Sections go to the device with their handle, as many records as it has room for.
#[test]
fn sections_go_where_their_handle_is_and_fill_the_room() {
    let begins = |mode: u32, area: u32, common: &str, handles: &str| {
        let handles = format!("handles: [{handles}], fill: 0, memory: Whole");
        let remote =
            format!("Remote {{ mode: {mode}, area: {area}, common: {common}, {handles} }}");
        play(linux(), &format!("{MAP}0 0 RemoteEnable({remote}) -> Done"))
    };
    let bus = format!("{:?}", linux::BUS);
    let (common, both) = (begins(0, 512, "0x1", ""), begins(0, 2, "0x1", &bus));
    let comparisons = begins(1, 512, "0x0", &bus);
    for (world, thread, work, count, outcome) in [
        (&common, 0, "SoftInterrupt", 0, Outcome::Unchanged),
        (&common, 1, "Worker", 0, Outcome::Unchanged),
        (&common, 0, "Worker", 0, Outcome::Grown(511)),
        (&common, 0, "Worker", 509, Outcome::Counted(509, 511)),
        (&common, 0, "Worker", 512, Outcome::Unchanged),
        (&both, 1, "SoftInterrupt", 508, Outcome::Counted(508, 511)),
        (&both, 0, "Worker", 0, Outcome::Grown(8)),
        (&comparisons, 1, "SoftInterrupt", 124, Outcome::Counted(124, 127)),
        (&comparisons, 1, "Worker", 0, Outcome::Unchanged),
    ] {
        let line = format!("thread: T({thread}), map: M(0), work: {work}, count: {count}");
        play(world.clone(), &format!("Background {{ {line} }} -> {outcome:?}"));
    }

    // If a section is running when collection ends, the kernel drops its records.
    let section = common.driver.begin(Origin::Handle(Handle(1))).expect("it is collected");
    assert!(common.driver.appends(&section));
    let remote = "Remote { mode: 0, area: 512, common: 0x1, handles: [], fill: 0, memory: Whole }";
    let again = format!("0 0 Disable(0) -> Done\n0 0 RemoteEnable({remote}) -> Done");
    let again = play(common.clone(), &again);
    assert!(again.driver.begin(Origin::Handle(Handle(1))).is_some());
    assert!(!again.driver.appends(&section));
}

/// Records that find any count, in a buffer of 64 words.
#[test]
fn a_count_is_a_place() {
    let at = |index, count| Place::At { index, count };
    let trusting = linux::Kernel { bounds_count: false, ..linux::Kernel::LATEST };
    let (linux, trusting) = (Linux::new(linux::Kernel::LATEST), Linux::new(trusting));
    let netbsd = NetBsd::new(netbsd::Kernel::LATEST);
    let [dropped, outside] = [Place::Dropped, Place::Outside];
    for (mode, count, on_linux, on_trusting, on_netbsd) in [
        (Mode::Pc, 0, at(1, 1), at(1, 1), at(1, 1)),
        (Mode::Pc, 62, at(63, 63), at(63, 63), at(63, 63)),
        (Mode::Pc, 63, dropped, dropped, dropped),
        (Mode::Pc, 1 << 63, dropped, dropped, dropped),
        (Mode::Pc, u64::MAX, at(0, 0), at(0, 0), dropped),
        (Mode::Cmp, 14, at(57, 15), at(57, 15), at(57, 15)),
        (Mode::Cmp, 15, dropped, dropped, dropped),
        (Mode::Cmp, 1 << 40, dropped, dropped, dropped),
        (Mode::Cmp, 1 << 62, dropped, outside, outside),
        (Mode::Cmp, u64::MAX, dropped, outside, outside),
    ] {
        let drivers: [(&dyn Driver, _); 3] =
            [(&linux, on_linux), (&trusting, on_trusting), (&netbsd, on_netbsd)];
        for (driver, place) in drivers {
            assert_eq!(driver.place(mode, 64, count), place, "{mode:?} {count:#x}: {driver:?}");
        }
    }
}

/// A NetBSD kernel accepts the mode for comparisons even if it records none.
#[test]
fn comparisons_need_instrumentation() {
    for (comparisons, mode) in [(true, Mode::Cmp), (false, Mode::None)] {
        let kernel = netbsd::Kernel { comparisons, ..netbsd::Kernel::LATEST };
        let world = play(World::new(NetBsd::new(kernel)), START);
        let world = play(world, "0 0 Enable(2) -> Done");
        let recording = world.driver.recording(Instance(0)).expect("enabled");
        assert_eq!(recording.mode, mode);
    }
}
