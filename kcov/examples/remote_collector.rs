//! Collects coverage from kernel workers for each of many cases, which are io_uring operations. The
//! ring inherits the handle, so it is made after enabling. Needs Linux 7.2 or later.
//!
//! The buffer is not reset between cases, because the kernel may be adding to it. Each case takes a
//! mark instead.
use kcov::remote::{RemoteSession, linux::Remote};
use kcov::{BufferSize, Completeness, Device, Pc, mode::TracePc};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

mod uring;
use uring::Workers;

/// The work for a case has ended if no record comes for this long.
const QUIET: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(2);

struct Collector {
    session: RemoteSession<TracePc>,
    ring: Workers,
    restarts: usize,
}

impl Collector {
    fn new() -> Result<Collector, Box<dyn std::error::Error>> {
        let device = Device::builder().size(BufferSize::words(8 << 10)).open()?;
        let session = device.into_remote_session(TracePc, &Remote::new().any_common())?;
        Ok(Collector { session, ring: Workers::new()?, restarts: 0 })
    }

    /// The PCs of exactly one case.
    fn collect(
        &mut self,
        case: impl FnOnce(&mut Workers) -> io::Result<()>,
    ) -> Result<BTreeSet<Pc>, Box<dyn std::error::Error>> {
        // Work that is still running belongs to the case before.
        if !self.session.settle(QUIET, Instant::now() + LIMIT) {
            return Err("the kernel does not come to rest".into());
        }
        let trace = self.session.trace();
        if trace.len() > trace.capacity() / 2 {
            self.session.restart()?;
            self.restarts += 1;
        }
        let mark = self.session.mark();
        case(&mut self.ring)?;
        // The section ends after the completion.
        self.session.settle(QUIET, Instant::now() + LIMIT);
        let trace = self.session.since(mark).ok_or("the session was restarted")?;
        match trace.completeness() {
            Completeness::Complete => Ok(trace.iter().collect()),
            full => Err(format!("records are missing: {full:?}").into()),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut collector = Collector::new()?;
    let file = File::open("/proc/version")?;
    let [mut nothing, mut reading, mut making] = [const { BTreeSet::new() }; 3];
    for _ in 0..20 {
        nothing.extend(collector.collect(Workers::nothing)?);
        reading.extend(collector.collect(|ring| ring.read(&file))?);
        // The first call makes the directory; later ones find it there.
        making.extend(collector.collect(|ring| ring.make_directory(c"/tmp/made").or(Ok(())))?);
    }
    let all = [("nothing", &nothing), ("read", &reading), ("make a directory", &making)];
    for (name, pcs) in all {
        let others = all.iter().filter(|(other, _)| *other != name);
        let others: BTreeSet<Pc> = others.flat_map(|(_, pcs)| (*pcs).clone()).collect();
        println!("{name}: {} PCs, {} in no other case", pcs.len(), pcs.difference(&others).count());
    }
    println!("{} restarts", collector.restarts);
    if nothing.is_empty() {
        return Err("nothing came: is the kernel older than Linux 7.2?".into());
    }
    Ok(())
}
