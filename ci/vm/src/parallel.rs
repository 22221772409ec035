//! Runs several guests at once, within the number of processors.

use crate::target::Target;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The number of the host's processors, or 1 if it is unknown.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` for each target in a thread, at most as many at once as there are `processors`, those
/// with the longest limits first. `done` receives each result with the target's index.
pub fn run<R: Send>(
    targets: &[&Target],
    processors: usize,
    work: impl Fn(&Target) -> R + Sync,
    mut done: impl FnMut(usize, R),
) {
    let mut order: Vec<usize> = (0..targets.len()).collect();
    order.sort_by_key(|&index| targets[index].program_limit);
    let (queue, (sender, results)) = (Mutex::new(order), channel());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
    thread::scope(|scope| {
        for _ in 0..processors.min(targets.len()) {
            let sender = sender.clone();
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                while let Some(index) = next() {
                    // The receiver waits for all senders.
                    let _ = sender.send((index, work(targets[index])));
                }
            });
        }
        drop(sender);
        results.iter().for_each(|(index, result)| done(index, result));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Targets;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn all_run_once_and_never_too_many_and_the_longest_begins() {
        let base = Path::new(env!("CARGO_MANIFEST_DIR"));
        let all = Targets::load(&base.join("data/targets.toml")).expect("valid").all;
        let targets: Vec<&Target> = all.iter().collect();
        for processors in 1..4 {
            let (busy, mut limits) = (AtomicUsize::new(0), Vec::new());
            let mut seen = vec![0; targets.len()];
            let work = |target: &Target| {
                assert!(busy.fetch_add(1, Ordering::SeqCst) < processors);
                thread::sleep(Duration::from_millis(2));
                busy.fetch_sub(1, Ordering::SeqCst);
                target.program_limit
            };
            run(&targets, processors, work, |index, limit| {
                seen[index] += 1;
                limits.push(limit);
            });
            assert!(seen.iter().all(|&count| count == 1), "{seen:?}");
            assert!(processors > 1 || limits.is_sorted_by(|one, other| one >= other), "{limits:?}");
        }
    }
}
