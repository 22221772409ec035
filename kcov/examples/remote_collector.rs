//! Collects what a thread of the kernel goes through for each of many cases: one that polls an io_uring
//! for submissions. The ring inherits the handle, so it is made after enabling. Linux 7.2 and later.
//!
//! The buffer is not reset between cases, as the kernel may be adding to it: each case has a mark.
use kcov::remote::linux::{Remote, RemoteSession};
use kcov::{BufferSize, Completeness, Device, Pc, mode::TracePc};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::time::Duration;

mod uring;
use uring::Polled;

/// Without a record for so long, a case has ended. The polling thread is asleep by then.
const QUIET: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(2);

struct Collector {
    session: RemoteSession<TracePc>,
    ring: Polled,
    restarts: usize,
}

impl Collector {
    fn new() -> Result<Collector, Box<dyn std::error::Error>> {
        let device = Device::builder().size(BufferSize::words(512 << 10)).open()?;
        let session = device.into_remote_session(TracePc, &Remote::new().any_common())?;
        Ok(Collector { session, ring: Polled::new()?, restarts: 0 })
    }

    /// The PCs of one case, and none of another one.
    fn collect(
        &mut self,
        case: impl FnOnce(&mut Polled) -> io::Result<()>,
    ) -> Result<BTreeSet<Pc>, Box<dyn std::error::Error>> {
        // What is still going on belongs to the case before.
        if !self.session.settle(QUIET, LIMIT) {
            return Err("the kernel does not come to rest".into());
        }
        let trace = self.session.trace();
        if trace.len() > trace.capacity() / 2 {
            self.session.restart()?;
            self.restarts += 1;
        }
        let mark = self.session.mark();
        case(&mut self.ring)?;
        // Its section ends after its completion.
        self.session.settle(QUIET, LIMIT);
        let trace = self.session.since(mark);
        eprintln!("{} of {}", trace.len(), self.session.trace().len());
        match trace.completeness() {
            Completeness::Complete => Ok(trace.iter().collect()),
            full => Err(format!("records are missing: {full:?}").into()),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut collector = Collector::new()?;
    let file = File::open("/proc/version")?;
    let rounds = 10;
    let [mut nothing, mut reading, mut socket] = [const { BTreeSet::new() }; 3];
    for _ in 0..rounds {
        nothing.extend(collector.collect(Polled::nothing)?);
        reading.extend(collector.collect(|ring| ring.read(&file))?);
        socket.extend(collector.collect(Polled::socket)?);
    }
    let all = [("nothing", &nothing), ("read", &reading), ("socket", &socket)];
    for (name, pcs) in all {
        let others = all.iter().filter(|(other, _)| *other != name);
        let others: BTreeSet<Pc> = others.flat_map(|(_, pcs)| (*pcs).clone()).collect();
        println!("{name}: {} PCs, {} in no other case", pcs.len(), pcs.difference(&others).count());
    }
    println!("{rounds} rounds, {} restarts", collector.restarts);
    if nothing.is_empty() {
        return Err("nothing came: is the kernel older than Linux 7.2?".into());
    }
    Ok(())
}
