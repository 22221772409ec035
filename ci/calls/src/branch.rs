//! Decodes the branches of arm, arm64, loongarch64, ppc64, riscv64 and s390x.
//!
//! Compilers call the hooks directly there, so nothing else needs decoding, and no crate
//! disassembles them all.

use object::{Architecture, Endianness};

/// A branch instruction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Branch {
    /// Its address.
    pub ip: u64,
    /// The address of the next instruction.
    pub next: u64,
    pub to: To,
}

/// Where a branch goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum To {
    Call(u64),
    Jump(u64),
    /// A call through a register or memory.
    CallPointer,
    /// A jump through a register or memory that is not a return.
    JumpPointer,
}

/// Whether this module decodes the architecture.
pub(crate) fn knows(architecture: Architecture) -> bool {
    matches!(
        architecture,
        Architecture::Aarch64
            | Architecture::Arm
            | Architecture::LoongArch64
            | Architecture::Riscv64
            | Architecture::S390x
            | Architecture::PowerPc64
    )
}

/// Decodes the code at this address.
pub(crate) fn decode(
    architecture: Architecture,
    endianness: Endianness,
    code: &[u8],
    address: u64,
) -> Vec<Branch> {
    match architecture {
        Architecture::Aarch64 => words(code, address, endianness, aarch64),
        Architecture::Arm => words(code, address, endianness, arm),
        Architecture::LoongArch64 => words(code, address, endianness, loongarch),
        Architecture::PowerPc64 => words(code, address, endianness, powerpc),
        Architecture::Riscv64 => riscv(code, address),
        Architecture::S390x => s390x(code, address),
        _ => Vec::new(),
    }
}

/// Decodes code whose instructions have four bytes.
fn words(
    code: &[u8],
    address: u64,
    endianness: Endianness,
    to: impl Fn(u32, u64) -> Option<To>,
) -> Vec<Branch> {
    let word = match endianness {
        Endianness::Little => u32::from_le_bytes,
        Endianness::Big => u32::from_be_bytes,
    };
    let branch = |at: usize| {
        let (ip, instruction) = (address + at as u64, word(bytes(code, at)?));
        Some(Branch { ip, next: ip + 4, to: to(instruction, ip)? })
    };
    (0..code.len()).step_by(4).filter_map(branch).collect()
}

fn bytes<const N: usize>(code: &[u8], at: usize) -> Option<[u8; N]> {
    code.get(at..at + N)?.try_into().ok()
}

/// A signed field of a word, in the word's lowest `bits` bits.
fn signed(word: u32, bits: u32) -> i64 {
    let unused = u32::BITS - bits;
    (((word << unused) as i32) >> unused).into()
}

/// Section C6.2 of the Arm Architecture Reference Manual for A-profile.
fn aarch64(word: u32, ip: u64) -> Option<To> {
    let near = |bits, low: u32| ip.wrapping_add_signed(signed(word >> low, bits) * 4);
    match word >> 26 {
        0b100101 => return Some(To::Call(near(26, 0))),
        0b000101 => return Some(To::Jump(near(26, 0))),
        _ => {}
    }
    match word {
        _ if word & 0xff00_0010 == 0x5400_0000 => Some(To::Jump(near(19, 5))), // B.cond
        // With an authenticated pointer, too.
        _ if word & 0xfeff_f000 == 0xd63f_0000 => Some(To::CallPointer), // BLR
        _ if word & 0xfeff_f000 == 0xd61f_0000 => Some(To::JumpPointer), // BR
        _ => None,
    }
}

/// Section A8.8 of the ARM Architecture Reference Manual for ARMv7-A, in the ARM encoding.
fn arm(word: u32, ip: u64) -> Option<To> {
    const SP: u32 = 13;
    const LR: u32 = 14;
    let near = ip.wrapping_add_signed(8 + signed(word, 24) * 4);
    let (low, base) = (word & 0xf, (word >> 16) & 0xf);
    match word {
        _ if word >> 28 == 0xf => None,
        _ if word & 0x0f00_0000 == 0x0b00_0000 => Some(To::Call(near)), // BL
        _ if word & 0x0f00_0000 == 0x0a00_0000 => Some(To::Jump(near)), // B
        _ if word & 0x0fff_fff0 == 0x012f_ff30 => Some(To::CallPointer), // BLX
        // BX and MOV to the program counter. Those of the link register are returns.
        _ if word & 0x0fff_fff0 == 0x012f_ff10 || word & 0x0fff_fff0 == 0x01a0_f000 => {
            (low != LR).then_some(To::JumpPointer)
        }
        // LDR to the program counter. That from the stack is a return.
        _ if word & 0x0c10_f000 == 0x0410_f000 => (base != SP).then_some(To::JumpPointer),
        _ => None,
    }
}

/// Section 2.2.5 of the LoongArch Reference Manual, volume 1. Offsets count words.
fn loongarch(word: u32, ip: u64) -> Option<To> {
    const RA: u32 = 1;
    let to = |offset: u32, bits| ip.wrapping_add_signed(signed(offset, bits) * 4);
    let (low, middle) = (word & 0x3ff, (word >> 10) & 0xffff);
    match word >> 26 {
        0x15 => Some(To::Call(to(low << 16 | middle, 26))), // BL
        0x14 => Some(To::Jump(to(low << 16 | middle, 26))), // B
        0x10..=0x12 => Some(To::Jump(to((word & 0x1f) << 16 | middle, 21))), // BEQZ, BNEZ, BCEQZ
        0x16..=0x1b => Some(To::Jump(to(middle, 16))),      // BEQ to BGEU
        // JIRL. To the return address it is a return.
        0x13 => match (word & 31, (word >> 5) & 31) {
            (RA, _) => Some(To::CallPointer),
            (_, RA) => None,
            _ => Some(To::JumpPointer),
        },
        _ => None,
    }
}

/// Section 2.4 of the Power ISA, Book I.
fn powerpc(word: u32, ip: u64) -> Option<To> {
    let (is_absolute, links) = (word & 2 != 0, word & 1 != 0);
    let target =
        |offset: i64| if is_absolute { offset as u64 } else { ip.wrapping_add_signed(offset) };
    let near = |target| if links { To::Call(target) } else { To::Jump(target) };
    match word >> 26 {
        18 => Some(near(target(signed((word >> 2) & 0xff_ffff, 24) * 4))),
        16 => Some(near(target(signed((word >> 2) & 0x3fff, 14) * 4))),
        // bcctr jumps to the count register. bclr is a return.
        19 if (word >> 1) & 0x3ff == 528 => {
            Some(if links { To::CallPointer } else { To::JumpPointer })
        }
        _ => None,
    }
}

/// Section 7 ("Branch instructions") of the z/Architecture Principles of Operation. The first two
/// bits of an instruction tell its length. Offsets count halfwords.
fn s390x(code: &[u8], address: u64) -> Vec<Branch> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&first) = code.get(at) {
        let length = [2, 4, 4, 6][usize::from(first >> 6)];
        let Some(bytes) = code.get(at..at + length) else { break };
        let ip = address + at as u64;
        let to = |offset: i64| ip.wrapping_add_signed(offset * 2);
        let near = |link: bool, to| if link { To::Call(to) } else { To::Jump(to) };
        let branch = match *bytes {
            [0xc0, op, a, b, c, d] if matches!(op & 15, 4 | 5) => {
                let offset = i32::from_be_bytes([a, b, c, d]);
                Some(near(op & 15 == 5, to(offset.into()))) // BRCL, BRASL
            }
            [0xa7, op, a, b] if matches!(op & 15, 4 | 5) => {
                Some(near(op & 15 == 5, to(i16::from_be_bytes([a, b]).into()))) // BRC, BRAS
            }
            [0x0d, registers] if registers & 15 != 0 => Some(To::CallPointer), // BASR
            // BCR, always. Register 14 has the return address.
            [0x07, 0xf1..=0xfd | 0xff] => Some(To::JumpPointer),
            _ => None,
        };
        found.extend(branch.map(|to| Branch { ip, next: ip + length as u64, to }));
        at += length;
    }
    found
}

/// Chapters "RV32I Base Integer Instruction Set" and "C Extension" of the RISC-V unprivileged
/// manual. A far call has two instructions; the first one computes an address.
fn riscv(code: &[u8], address: u64) -> Vec<Branch> {
    const RA: u32 = 1;
    let mut found = Vec::new();
    // The register and the value of AUIPC just before.
    let mut computed: Option<(u32, u64)> = None;
    let mut at = 0;
    while let Some(half) = bytes(code, at) {
        let ip = address + at as u64;
        let half = u32::from(u16::from_le_bytes(half));
        let before = computed.take();
        if half & 3 != 3 {
            let register = (half >> 7) & 31;
            let to = match (half >> 12, half & 0x7f) {
                (0b1001, 0b10) if register != 0 => Some(To::CallPointer), // C.JALR
                (0b1000, 0b10) if register > RA => Some(To::JumpPointer), // C.JR
                _ if half & 0xe003 == 0xa001 => {
                    Some(To::Jump(ip.wrapping_add_signed(short_jump(half)))) // C.J
                }
                _ => None,
            };
            found.extend(to.map(|to| Branch { ip, next: ip + 2, to }));
            at += 2;
            continue;
        }
        let Some(word) = bytes(code, at) else { break };
        let word = u32::from_le_bytes(word);
        let (to, from) = ((word >> 7) & 31, (word >> 15) & 31);
        let near = |target| if to == RA { To::Call(target) } else { To::Jump(target) };
        let branch = match word & 0x7f {
            0x17 => {
                computed = Some((to, ip.wrapping_add_signed(signed(word >> 12, 20) << 12)));
                None
            }
            0x6f => Some(near(ip.wrapping_add_signed(long_jump(word)))), // JAL
            0x67 => match before {
                Some((register, value)) if register == from => {
                    Some(near(value.wrapping_add_signed(signed(word >> 20, 12))))
                }
                _ if to == RA => Some(To::CallPointer),
                _ if from != RA => Some(To::JumpPointer),
                _ => None,
            },
            _ => None,
        };
        found.extend(branch.map(|to| Branch { ip, next: ip + 4, to }));
        at += 4;
    }
    found
}

/// Puts fields of a word together: each is its lowest bit in the word, its number of bits, and its
/// place in the result.
fn gather(word: u32, fields: &[(u32, u32, u32)]) -> u32 {
    fields.iter().map(|(low, bits, place)| ((word >> low) & ((1 << bits) - 1)) << place).sum()
}

/// The offset of JAL.
fn long_jump(word: u32) -> i64 {
    signed(gather(word, &[(21, 10, 1), (20, 1, 11), (12, 8, 12), (31, 1, 20)]), 21)
}

/// The offset of C.J.
fn short_jump(half: u32) -> i64 {
    const FIELDS: &[(u32, u32, u32)] = &[
        (3, 3, 1),
        (11, 1, 4),
        (2, 1, 5),
        (7, 1, 6),
        (6, 1, 7),
        (9, 2, 8),
        (8, 1, 10),
        (12, 1, 11),
    ];
    signed(gather(half, FIELDS), 12)
}

#[cfg(test)]
mod tests {
    use super::To::{Call, CallPointer, Jump, JumpPointer};
    use super::*;

    /// The branches of code at this address, as offsets of instructions and of those behind them.
    fn decoded(
        architecture: Architecture,
        endianness: Endianness,
        code: &[u8],
    ) -> Vec<(u64, u64, To)> {
        const START: u64 = 0x1_0000;
        let found = decode(architecture, endianness, code, START);
        let relative = |to| match to {
            Call(address) => Call(address - START),
            Jump(address) => Jump(address - START),
            other => other,
        };
        let place = |branch: &Branch| (branch.ip - START, branch.next - START, relative(branch.to));
        found.iter().map(place).collect()
    }

    fn big_endian(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn little_endian(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn branches_of_arm64() {
        // bl .+0x1000; b .+8; bl .-8; b.eq .-8; ret; blr x3; br x16; nop; cbz x0, .+8
        let code = [
            0x9400_0400,
            0x1400_0002,
            0x97ff_fffe,
            0x54ff_ffc0,
            0xd65f_03c0,
            0xd63f_0060,
            0xd61f_0200,
            0xd503_201f,
            0xb400_0040,
        ];
        let expected = [
            (0, 4, Call(0x1000)),
            (4, 8, Jump(12)),
            (8, 12, Call(0)),
            (12, 16, Jump(4)),
            (20, 24, CallPointer),
            (24, 28, JumpPointer),
        ];
        let code = little_endian(&code);
        assert_eq!(decoded(Architecture::Aarch64, Endianness::Little, &code), expected);
    }

    #[test]
    fn branches_of_arm() {
        // bl .+0x1000; b .+8; bl .-8; beq .-8; bx lr; blx r3; bx r3; mov pc, lr; ldr pc, [r3];
        // pop {pc}; nop
        let code = [
            0xeb00_03fe,
            0xea00_0000,
            0xebff_fffc,
            0x0aff_fffc,
            0xe12f_ff1e,
            0xe12f_ff33,
            0xe12f_ff13,
            0xe1a0_f00e,
            0xe593_f000,
            0xe49d_f004,
            0xe320_f000,
        ];
        let expected = [
            (0, 4, Call(0x1000)),
            (4, 8, Jump(12)),
            (8, 12, Call(0)),
            (12, 16, Jump(4)),
            (20, 24, CallPointer),
            (24, 28, JumpPointer),
            (32, 36, JumpPointer),
        ];
        let code = little_endian(&code);
        assert_eq!(decoded(Architecture::Arm, Endianness::Little, &code), expected);
    }

    #[test]
    fn branches_of_loongarch64() {
        // bl .+0x1000; b .-4; beqz a0, .+8; bne a0, a1, .-8; jirl ra, a0, 0; jr a0; ret; nop;
        // bnez a0, .-0x20; bceqz fcc0, .+8
        let code = [
            0x5410_0000,
            0x53ff_ffff,
            0x4000_0880,
            0x5fff_f885,
            0x4c00_0081,
            0x4c00_0080,
            0x4c00_0020,
            0x0340_0000,
            0x47ff_e09f,
            0x4800_0800,
        ];
        let expected = [
            (0, 4, Call(0x1000)),
            (4, 8, Jump(0)),
            (8, 12, Jump(16)),
            (12, 16, Jump(4)),
            (16, 20, CallPointer),
            (20, 24, JumpPointer),
            (32, 36, Jump(0)),
            (36, 40, Jump(44)),
        ];
        let code = little_endian(&code);
        assert_eq!(decoded(Architecture::LoongArch64, Endianness::Little, &code), expected);
    }

    #[test]
    fn branches_of_ppc64() {
        // bl .+0x1000; b .+8; bl .-8; beq .-12; blr; mtctr r3; bctrl; bctr; nop
        let code = [
            0x4800_1001,
            0x4800_0008,
            0x4bff_fff9,
            0x4182_fff4,
            0x4e80_0020,
            0x7c69_03a6,
            0x4e80_0421,
            0x4e80_0420,
            0x6000_0000,
        ];
        let expected = [
            (0, 4, Call(0x1000)),
            (4, 8, Jump(12)),
            (8, 12, Call(0)),
            (12, 16, Jump(0)),
            (24, 28, CallPointer),
            (28, 32, JumpPointer),
        ];
        let architecture = Architecture::PowerPc64;
        let little = little_endian(&code);
        assert_eq!(decoded(architecture, Endianness::Little, &little), expected);
        assert_eq!(decoded(architecture, Endianness::Big, &big_endian(&code)), expected);
    }

    #[test]
    fn branches_of_s390x() {
        #[rustfmt::skip]
        let code = [
            0xc0, 0xe5, 0, 0, 8, 0,                // brasl %r14,.+0x1000
            0xc0, 0xe5, 0xff, 0xff, 0xff, 0xfd,    // brasl %r14,.-6
            0xc0, 0xf4, 0, 0, 0, 4,                // jg .+8
            0xa7, 0x84, 0xff, 0xf8,                // je .-16
            0x07, 0xfe,                            // br %r14
            0x0d, 0xe1,                            // basr %r14,%r1
            0x07, 0xf1,                            // br %r1
            0xa7, 0xe5, 0, 10,                     // bras %r14,.+20
            0x07, 0x07,                            // bcr 0,%r7
        ];
        let expected = [
            (0, 6, Call(0x1000)),
            (6, 12, Call(0)),
            (12, 18, Jump(20)),
            (18, 22, Jump(2)),
            (24, 26, CallPointer),
            (26, 28, JumpPointer),
            (28, 32, Call(48)),
        ];
        assert_eq!(decoded(Architecture::S390x, Endianness::Big, &code), expected);
    }

    #[test]
    fn branches_of_riscv64() {
        #[rustfmt::skip]
        let code = [
            0xef, 0x10, 0, 0,          // jal .+0x1000
            0xef, 0xf0, 0xdf, 0xff,    // jal .-4
            0x6f, 0, 0x80, 0,          // j .+8
            0x97, 0x10, 0, 0,          // auipc ra, 1
            0xe7, 0x80, 0xc0, 0xff,    // jalr -4(ra)
            0x17, 0x13, 0, 0,          // auipc t1, 1
            0x67, 0, 0x83, 0,          // jr 8(t1)
            0xe7, 0x80, 0x07, 0,       // jalr a5
            0x67, 0, 0x07, 0,          // jr a4
            0x67, 0x80, 0, 0,          // ret
            0xcd, 0xb7,                // c.j .-30
            0x95, 0xa0,                // c.j .+100
            0x82, 0x97,                // c.jalr a5
            0x82, 0x87,                // c.jr a5
            0x82, 0x80,                // c.jr ra
            0x01, 0,                   // c.nop
        ];
        let expected = [
            (0, 4, Call(0x1000)),
            (4, 8, Call(0)),
            (8, 12, Jump(16)),
            (16, 20, Call(0x1008)),
            (24, 28, Jump(0x101c)),
            (28, 32, CallPointer),
            (32, 36, JumpPointer),
            (40, 42, Jump(10)),
            (42, 44, Jump(142)),
            (44, 46, CallPointer),
            (46, 48, JumpPointer),
        ];
        assert_eq!(decoded(Architecture::Riscv64, Endianness::Little, &code), expected);
    }

    #[test]
    fn code_that_ends_within_an_instruction_is_no_branch() {
        let (arm64, ppc64) = (Architecture::Aarch64, Architecture::PowerPc64);
        assert_eq!(decoded(arm64, Endianness::Little, &[0, 4, 0]), []);
        assert_eq!(decoded(ppc64, Endianness::Big, &[0x48]), []);
        assert_eq!(decoded(Architecture::S390x, Endianness::Big, &[0xc0, 0xe5, 0]), []);
        assert_eq!(decoded(Architecture::Riscv64, Endianness::Little, &[0xef, 0x10]), []);
    }
}
