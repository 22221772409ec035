//! How other fuzzers process a trace, reimplemented from descriptions.

use rustc_hash::FxHashSet;
use std::collections::HashSet;

/// A set of PCs for lookups of traces.
pub trait Peer {
    fn name(&self) -> &'static str;
    /// Remembers PCs.
    fn learn(&mut self, pcs: &[u64]);
    /// Names the new PCs, each as often as the peer does. A peer that cannot name PCs gives its new
    /// places instead.
    fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>);
}

/// syzkaller's executor: signals pass a small, lossy table of the call's earlier signals, then a
/// bitmap of all signals ever seen.
pub struct Syzkaller {
    edges: bool,
    /// 8192 signals, each with the number of its call.
    table: Vec<(u64, u8)>,
    call: u8,
    seen: Regions,
}

impl Syzkaller {
    pub fn new(edges: bool) -> Syzkaller {
        Syzkaller { edges, table: vec![(0, 0); 8192], call: 0, seen: Regions::default() }
    }

    /// Probes four slots; if others use them all, evicts one.
    fn repeats(&mut self, signal: u64) -> bool {
        let (call, mask) = (self.call, self.table.len() as u64 - 1);
        for probe in 0..4 {
            let slot = &mut self.table[(signal.wrapping_add(probe) & mask) as usize];
            if *slot == (signal, call) {
                return true;
            }
            if slot.1 != call {
                *slot = (signal, call);
                return false;
            }
        }
        self.table[(signal & mask) as usize] = (signal, call);
        false
    }

    fn each(&self, trace: &[u64], previous: &mut u64, index: usize) -> u64 {
        let pc = trace[index];
        if !self.edges {
            return pc;
        }
        let mut hash = (*previous & 0xfff) as u32;
        hash = (hash ^ 61) ^ (hash >> 16);
        hash = hash.wrapping_add(hash << 3);
        hash ^= hash >> 4;
        hash = hash.wrapping_mul(0x27d4_eb2d);
        hash ^= hash >> 15;
        *previous = pc;
        pc ^ u64::from(hash & 0xfff)
    }
}

impl Peer for Syzkaller {
    fn name(&self) -> &'static str {
        if self.edges { "syzkaller, edges" } else { "syzkaller, PCs" }
    }

    fn learn(&mut self, pcs: &[u64]) {
        let mut previous = 0;
        for index in 0..pcs.len() {
            let signal = self.each(pcs, &mut previous, index);
            self.seen.insert(signal);
        }
    }

    fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>) {
        self.call = self.call.wrapping_add(1);
        let mut previous = 0;
        for index in 0..trace.len() {
            let signal = self.each(trace, &mut previous, index);
            if !self.repeats(signal) && !self.seen.contains(signal) {
                new.push(signal);
            }
        }
    }
}

/// A three-level bitmap: up to eight regions of 1 GiB, in parts of 1 MiB, in parts of 16 KiB with
/// one bit per 8 bytes.
#[derive(Default)]
struct Regions {
    regions: Vec<(u64, Box<[u32; 1024]>)>,
    middles: Vec<[u32; 64]>,
    leaves: Vec<[u64; 32]>,
}

impl Regions {
    fn insert(&mut self, pc: u64) {
        let region = match self.regions.iter().position(|(start, _)| *start == pc >> 30) {
            Some(region) => region,
            None => {
                self.regions.push((pc >> 30, Box::new([0; 1024])));
                self.regions.len() - 1
            }
        };
        let middle = &mut self.regions[region].1[(pc >> 20) as usize % 1024];
        if *middle == 0 {
            self.middles.push([0; 64]);
            *middle = self.middles.len() as u32;
        }
        let leaf = &mut self.middles[*middle as usize - 1][(pc >> 14) as usize % 64];
        if *leaf == 0 {
            self.leaves.push([0; 32]);
            *leaf = self.leaves.len() as u32;
        }
        self.leaves[*leaf as usize - 1][(pc >> 9) as usize % 32] |= 1 << (pc >> 3 & 63);
    }

    fn contains(&self, pc: u64) -> bool {
        let Some((_, region)) = self.regions.iter().find(|(start, _)| *start == pc >> 30) else {
            return false;
        };
        let middle = region[(pc >> 20) as usize % 1024];
        if middle == 0 {
            return false;
        }
        let leaf = self.middles[middle as usize - 1][(pc >> 14) as usize % 64];
        leaf != 0
            && self.leaves[leaf as usize - 1][(pc >> 9) as usize % 32] >> (pc >> 3 & 63) & 1 != 0
    }
}

/// trinity: a table of the call's PCs, stamped with the call's number, and an 8 MiB map of classed
/// hit counts, indexed by a hash of the PC.
pub struct Trinity {
    table: Vec<(u64, u32, u32)>,
    call: u32,
    seen: Vec<u8>,
}

impl Trinity {
    const SLOTS: usize = 16384;
    const PROBES: usize = 32;

    pub fn new() -> Trinity {
        Trinity { table: vec![(0, 0, 0); Trinity::SLOTS], call: 0, seen: vec![0; 8 << 20] }
    }

    /// The finaliser of MurmurHash3 for 64 bits.
    fn mix(mut pc: u64) -> u64 {
        pc ^= pc >> 33;
        pc = pc.wrapping_mul(0xff51_afd7_ed55_8ccd);
        pc ^= pc >> 33;
        pc = pc.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        pc ^ pc >> 33
    }

    /// Reimplemented, because peers must not depend on the crate they are compared with.
    fn class(hits: u32) -> u8 {
        match hits {
            1 => 1,
            2 => 2,
            3 => 4,
            4..=7 => 8,
            8..=15 => 16,
            16..=31 => 32,
            32..=127 => 64,
            _ => 128,
        }
    }
}

impl Peer for Trinity {
    fn name(&self) -> &'static str {
        "trinity"
    }

    fn learn(&mut self, pcs: &[u64]) {
        for &pc in pcs {
            let place = Trinity::mix(pc) as usize % self.seen.len();
            self.seen[place] = 255;
        }
    }

    fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>) {
        self.call += 1;
        for &pc in trace {
            let hash = Trinity::mix(pc) as usize;
            let mut hits = 1;
            for probe in 0..Trinity::PROBES {
                let slot = &mut self.table[(hash + probe) % Trinity::SLOTS];
                if slot.1 != self.call {
                    *slot = (pc, self.call, 1);
                    break;
                }
                if slot.0 == pc {
                    slot.2 += 1;
                    hits = slot.2;
                    break;
                }
            }
            if self.seen[hash % self.seen.len()] & Trinity::class(hits) == 0 {
                new.push(pc);
            }
        }
    }
}

/// A `HashSet` of all PCs ever seen, with rustc's hash.
#[derive(Default)]
pub struct FxGlobal(FxHashSet<u64>);

impl Peer for FxGlobal {
    fn name(&self) -> &'static str {
        "Fx HashSet, global only"
    }

    fn learn(&mut self, pcs: &[u64]) {
        self.0.extend(pcs);
    }

    fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>) {
        new.extend(trace.iter().filter(|pc| !self.0.contains(*pc)));
    }
}

/// The same, with a second set for the PCs of one execution.
#[derive(Default)]
pub struct FxDedup(FxHashSet<u64>, FxHashSet<u64>);

impl Peer for FxDedup {
    fn name(&self) -> &'static str {
        "Fx HashSet, dedup and global"
    }

    fn learn(&mut self, pcs: &[u64]) {
        self.0.extend(pcs);
    }

    fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>) {
        self.1.clear();
        new.extend(trace.iter().filter(|pc| self.1.insert(**pc) && !self.0.contains(*pc)));
    }
}

/// The standard library's `HashSet`.
#[derive(Default)]
pub struct StdGlobal(HashSet<u64>);

impl Peer for StdGlobal {
    fn name(&self) -> &'static str {
        "std HashSet, global only"
    }

    fn learn(&mut self, pcs: &[u64]) {
        self.0.extend(pcs);
    }

    fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>) {
        new.extend(trace.iter().filter(|pc| !self.0.contains(*pc)));
    }
}

/// A sorted copy without duplicates, searched in a sorted array.
#[derive(Default)]
pub struct SortDedup(Vec<u64>, Vec<u64>);

impl Peer for SortDedup {
    fn name(&self) -> &'static str {
        "sort, dedup, search"
    }

    fn learn(&mut self, pcs: &[u64]) {
        self.0.extend(pcs);
        self.0.sort_unstable();
        self.0.dedup();
    }

    fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>) {
        self.1.clear();
        self.1.extend_from_slice(trace);
        self.1.sort_unstable();
        self.1.dedup();
        new.extend(self.1.iter().filter(|pc| self.0.binary_search(pc).is_err()));
    }
}

/// AFL's descendants: hit counts in a 64 KiB byte map, classed and compared with the seen ones.
pub struct ByteMap {
    counts: Vec<u8>,
    seen: Vec<u8>,
}

impl ByteMap {
    pub fn new() -> ByteMap {
        ByteMap { counts: vec![0; 65536], seen: vec![0; 65536] }
    }
}

impl Peer for ByteMap {
    fn name(&self) -> &'static str {
        "u8 map, count and compare"
    }

    fn learn(&mut self, pcs: &[u64]) {
        kcov_signal::count_hits(pcs, &mut self.seen);
        self.seen.iter_mut().filter(|seen| **seen > 0).for_each(|seen| *seen = 255);
    }

    fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>) {
        self.counts.fill(0);
        for &pc in trace {
            let place = (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
            self.counts[place] = self.counts[place].saturating_add(1);
        }
        let pairs = self.counts.iter().zip(&self.seen).enumerate();
        new.extend(pairs.filter_map(|(place, (count, seen))| {
            let class = Trinity::class(u32::from(*count));
            (class & !seen != 0 && *count > 0).then_some(place as u64)
        }));
    }
}
