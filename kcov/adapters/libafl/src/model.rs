//! Synthetic traces, without a kernel: each byte of the input leads through a few places, and the
//! more of a word is right, the further it goes.

use crate::executor::Target;
use kcov::Trace;
use kcov::mode::TracePc;
use std::sync::atomic::AtomicU64;

const TEXT: u64 = 0xffff_ffff_8100_0000;
const WORD: &[u8] = b"kcov";

pub struct Model;

impl Target for Model {
    fn run(&mut self, input: &[u8], look: impl FnOnce(Trace<'_, TracePc>)) {
        let deep = input.iter().zip(WORD).take_while(|(byte, expected)| byte == expected).count();
        let blocks = input.iter().map(|byte| u64::from(byte % 16) * 0x40);
        let pcs: Vec<u64> =
            blocks.chain((0..deep as u64).map(|depth| 0x1000 + depth * 0x100)).collect();
        let words = [pcs.len() as u64].into_iter().chain(pcs.iter().map(|pc| TEXT + pc));
        let buffer: Vec<AtomicU64> = words.map(AtomicU64::new).collect();
        look(Trace::from_words(&buffer, TracePc));
    }
}
