//! The modes of the kernel: the two that every kernel with kcov has, and those that have been
//! proposed for Linux.

use super::bursts::{best, time};
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::proposed::{EdgeDevice, EdgeSession, UniqEdge, UniqueEnable, UniqueSession};
use kcov::{BufferSize, Completeness, Device, Error, Modes, Session};

/// Words of a buffer for any call.
pub const WORDS: u64 = 1 << 18;
/// Words of the bitmap that marks which basic blocks have been executed.
const BITMAP: usize = 1 << 12;
pub const ENABLED: &str = "the device is enabled";

/// A burst in a device of its own, with a reset before each pass. Returns the nanoseconds of a pass,
/// and the number of records of the first.
pub type Burst = Box<dyn Fn(u32, &dyn Fn()) -> (f64, usize)>;

pub struct Column {
    pub name: &'static str,
    /// The column whose records count the hooks that this mode handles.
    pub hooks: usize,
    pub burst: Burst,
}

pub fn all() -> Result<Vec<Column>, Error> {
    let proposals = Modes::probe()?.proposals();
    let (extended, pc) = (proposals.trace_pc_ext(), proposals.uniq_pc());
    let (edge, cmp) = (proposals.uniq_edge(), proposals.uniq_cmp());
    let unique = proposals.unique();
    let columns = [
        Some(("PC mode", 0, mode(TracePc, WORDS))),
        Some(("comparison mode", 1, mode(TraceCmp, WORDS))),
        extended.map(|it| ("entries and exits", 2, mode(it, WORDS))),
        pc.map(|it| ("unique PCs", 0, mode(it, WORDS))),
        edge.map(|it| ("unique edges", 0, edges(it))),
        cmp.map(|it| ("unique comparisons", 1, mode(it, WORDS))),
        unique.map(|it| ("bitmap", 0, bitmap(it, true))),
        unique.map(|it| ("bitmap, kept", 0, bitmap(it, false))),
    ];
    let columns = columns.into_iter().flatten();
    Ok(columns.map(|(name, hooks, burst)| Column { name, hooks, burst }).collect())
}

/// The nanoseconds of a pass alone and in a mode, and its records.
pub fn compare(rounds: u32, pass: &dyn Fn(), burst: &Burst) -> (f64, f64, usize) {
    let mut records = 0;
    let [alone, nanos] = best(
        rounds,
        [&mut |passes| time(passes, pass), &mut |passes| {
            let nanos;
            (nanos, records) = burst(passes, pass);
            nanos
        }],
    );
    (alone, nanos, records)
}

/// Opens a device that forked children do not inherit.
pub fn open(words: u64) -> Device {
    // SAFETY: the children of this program end at once.
    let builder = unsafe { Device::builder().not_inherited() };
    builder.size(BufferSize::words(words)).open().expect("opened")
}

pub fn mode<M: Mode + 'static>(mode: M, words: u64) -> Burst {
    Box::new(move |passes, call| {
        let mut device = open(words);
        let session = device.enable(mode).expect(ENABLED);
        burst(passes, call, session, Session::reset, |it| {
            let trace = it.trace();
            assert_eq!(trace.completeness(), Completeness::Complete, "the buffer is too small");
            trace.len()
        })
    })
}

fn edges(edge: UniqEdge) -> Burst {
    Box::new(move |passes, call| {
        let mut device = EdgeDevice::new(open(WORDS), edge).expect("mapped");
        let session = device.enable().expect(ENABLED);
        burst(passes, call, session, EdgeSession::reset, |it| it.edges().len())
    })
}

fn bitmap(unique: UniqueEnable, clears: bool) -> Burst {
    Box::new(move |passes, call| {
        let mut device = open(WORDS);
        let session = unique.enable(&mut device, BITMAP).expect(ENABLED);
        let reset = |it: &mut UniqueSession<'_>| if clears { it.reset() } else { it.reset_count() };
        burst(passes, call, session, reset, |it| {
            assert_eq!(it.bitmap().get(BITMAP - 1), Some(0), "the bitmap is too small");
            it.trace().len()
        })
    })
}

fn burst<S>(
    passes: u32,
    call: &dyn Fn(),
    mut session: S,
    reset: impl Fn(&mut S),
    records: impl Fn(&S) -> usize,
) -> (f64, usize) {
    reset(&mut session);
    call();
    let first = records(&session);
    let nanos = time(passes, || {
        reset(&mut session);
        call();
    });
    (nanos, first)
}
