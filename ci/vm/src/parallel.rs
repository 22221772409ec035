//! Runs several guests at once, within the number of processors.

use crate::target::Target;
use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// The number of the host's processors, or 1 if it is unknown.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` for each target in a thread. It runs as many at once as there
/// are processors for their guests, those with the longest limits first. `done`
/// receives each result with the target's index.
pub fn run<R: Send>(
    targets: &[&Target],
    processors: usize,
    work: impl Fn(&Target) -> R + Sync,
    mut done: impl FnMut(usize, R),
) {
    let weight = |target: &Target| (target.smp as usize).clamp(1, processors);
    let mut order: Vec<usize> = (0..targets.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(targets[index].program_limit));
    let queue = Mutex::new((VecDeque::from(order), processors));
    let freed = Condvar::new();
    let next = || {
        let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let (waiting, free) = &mut *state;
            if waiting.is_empty() {
                return None;
            }
            let fits = waiting.iter().position(|&index| weight(targets[index]) <= *free);
            if let Some(index) = fits.and_then(|place| waiting.remove(place)) {
                *free -= weight(targets[index]);
                return Some(index);
            }
            state = freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    };
    let release = |index: usize| {
        queue.lock().unwrap_or_else(PoisonError::into_inner).1 += weight(targets[index]);
        freed.notify_all();
    };
    let (sender, results) = channel();
    thread::scope(|scope| {
        for _ in 0..processors.min(targets.len()) {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                while let Some(index) = next() {
                    let result = work(targets[index]);
                    release(index);
                    // The receiver waits for all senders.
                    let _ = sender.send((index, result));
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
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    #[test]
    fn all_run_once_and_never_too_many() {
        let base = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut target =
            Targets::load(&base.join("data/targets.toml")).expect("valid").all.remove(0);
        let targets: Vec<Target> = [1, 2, 1, 4, 1, 1]
            .into_iter()
            .map(|smp| {
                target.smp = smp;
                target.clone()
            })
            .collect();
        let targets: Vec<&Target> = targets.iter().collect();
        for processors in 1..4 {
            let busy = AtomicU32::new(0);
            let most = processors as u32;
            let mut seen = vec![0; targets.len()];
            let work = |target: &Target| {
                let own = target.smp.min(most);
                assert!(busy.fetch_add(own, Ordering::SeqCst) + own <= most);
                thread::sleep(Duration::from_millis(2));
                busy.fetch_sub(own, Ordering::SeqCst);
                target.smp
            };
            run(&targets, processors, work, |index, smp| {
                assert_eq!(targets[index].smp, smp);
                seen[index] += 1;
            });
            assert!(seen.iter().all(|&count| count == 1), "{seen:?}");
        }
    }

    #[test]
    fn the_longest_begins() {
        let base = Path::new(env!("CARGO_MANIFEST_DIR"));
        let all = Targets::load(&base.join("data/targets.toml")).expect("valid").all;
        let targets: Vec<&Target> = all.iter().collect();
        let mut limits = Vec::new();
        run(&targets, 1, |target| target.program_limit, |_, limit| limits.push(limit));
        assert!(limits.is_sorted_by(|one, other| one >= other), "{limits:?}");
    }
}
