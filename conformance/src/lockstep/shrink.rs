//! Shortens a sequence that makes kernel and model diverge.

use super::{Divergence, Lockstep};
use kcov_model::Operation;
use std::time::{Duration, Instant};

/// Without an end, a kernel that hangs would make each attempt take long.
const LIMIT: Duration = Duration::from_secs(120);

/// Leaves out operations and merges threads as long as the sequence diverges.
pub(super) fn shrink(lockstep: &mut Lockstep, found: Divergence) -> Divergence {
    let end = Instant::now() + LIMIT;
    let mut best = found;
    // Asking only some threads takes a fraction of the time, if it shows the divergence.
    let thorough = !matches!(lockstep.again(&best.operations, false), Ok(Some(_)));
    let mut chunk = best.operations.len().div_ceil(2);
    while chunk > 0 && Instant::now() < end {
        let mut shorter = false;
        let mut start = 0;
        while start < best.operations.len() && Instant::now() < end {
            let mut candidate = best.operations.clone();
            candidate.drain(start..candidate.len().min(start + chunk));
            match try_it(lockstep, &candidate, &best, thorough) {
                Some(divergence) => {
                    best = divergence;
                    shorter = true;
                }
                None => start += chunk,
            }
        }
        if let Some(divergence) = fewer_names(lockstep, &best, thorough, end) {
            best = divergence;
            shorter = true;
        }
        if !shorter || chunk > 1 {
            chunk /= 2;
        }
    }
    best
}

/// Merges a thread into another one, or a duplicated descriptor into the original.
fn fewer_names(
    lockstep: &mut Lockstep,
    best: &Divergence,
    thorough: bool,
    end: Instant,
) -> Option<Divergence> {
    for (index, operation) in best.operations.iter().enumerate() {
        let Some((kind, copy, original)) = operation.copies() else { continue };
        if Instant::now() >= end {
            break;
        }
        let mut candidate = best.operations.clone();
        candidate.remove(index);
        for operation in &mut candidate {
            operation.visit_names(|of, name| {
                if of == kind && *name == copy {
                    *name = original;
                }
            });
        }
        let found = try_it(lockstep, &candidate, best, thorough);
        if found.is_some() {
            return found;
        }
    }
    None
}

fn try_it(
    lockstep: &mut Lockstep,
    candidate: &[Operation],
    best: &Divergence,
    thorough: bool,
) -> Option<Divergence> {
    // A sequence that cannot be executed is not a solution.
    let found = lockstep.again(candidate, thorough).ok().flatten()?;
    (found.operations.len() < best.operations.len()).then_some(found)
}
