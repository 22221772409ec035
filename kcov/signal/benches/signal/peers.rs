//! How other fuzzers process a trace, reimplemented from descriptions.

/// syzkaller's executor: signals pass a small, lossy table of the call's earlier signals, then a
/// bitmap of all signals ever seen.
pub struct Syzkaller {
    /// 8192 signals, each with the number of its call.
    table: Vec<(u64, u8)>,
    call: u8,
    seen: Regions,
}

impl Syzkaller {
    pub fn new(known: &[u64]) -> Syzkaller {
        let mut seen = Regions::default();
        known.iter().for_each(|pc| seen.insert(*pc));
        Syzkaller { table: vec![(0, 0); 8192], call: 0, seen }
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

    /// Names the new PCs, some of them more than once.
    pub fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>) {
        self.call = self.call.wrapping_add(1);
        new.extend(trace.iter().filter(|pc| !self.repeats(**pc) && !self.seen.contains(**pc)));
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

/// AFL's descendants: hit counts in a 64 KiB byte map, classed and compared with the seen ones.
pub struct ByteMap {
    counts: Vec<u8>,
    seen: Vec<u8>,
}

impl ByteMap {
    pub fn new(known: &[u64]) -> ByteMap {
        let mut seen = vec![0; 65536];
        kcov_signal::count_hits(known, &mut seen);
        seen.iter_mut().filter(|seen| **seen > 0).for_each(|seen| *seen = 255);
        ByteMap { counts: vec![0; 65536], seen }
    }

    /// Reports the indices of bytes that changed, because a byte does not identify PCs.
    pub fn name_new(&mut self, trace: &[u64], new: &mut Vec<u64>) {
        self.counts.fill(0);
        for &pc in trace {
            let place = (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
            self.counts[place] = self.counts[place].saturating_add(1);
        }
        let pairs = self.counts.iter().zip(&self.seen).enumerate();
        new.extend(pairs.filter_map(|(place, (count, seen))| {
            (class(*count) & !seen != 0 && *count > 0).then_some(place as u64)
        }));
    }
}

/// The class of a number of hits.
fn class(hits: u8) -> u8 {
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
