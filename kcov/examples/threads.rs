//! Traces several threads at once. Each has its own device, because a device traces one thread at a
//! time. No thread's records appear in another's trace.
use kcov::{Device, Error, Pc, mode::TracePc};
use std::collections::BTreeSet;
use std::{fs, thread};

fn trace(path: &str) -> Result<BTreeSet<Pc>, Error> {
    let mut device = Device::open()?;
    let session = device.enable(TracePc)?;
    let _ = fs::metadata(path);
    Ok(session.disable()?.trace().iter().collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths = ["/", "/proc/self/status", "/dev/null"];
    let traces = thread::scope(|scope| {
        let threads = paths.map(|path| scope.spawn(move || trace(path)));
        threads.map(|thread| thread.join().expect("no panic"))
    });
    let mut all = BTreeSet::new();
    for (path, trace) in paths.iter().zip(traces) {
        let trace = trace?;
        let (pcs, before) = (trace.len(), all.len());
        all.extend(trace);
        println!("{path}: {pcs} PCs, {} of them in no trace before", all.len() - before);
    }
    Ok(())
}
