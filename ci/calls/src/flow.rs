//! Follows the control flow to find which registers and stack slots may hold a wanted function's
//! address.

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use std::collections::{BTreeMap, BTreeSet};

/// The places that hold the address before an instruction.
#[derive(Clone, Copy, Default, PartialEq)]
struct Held {
    /// One bit for each general register, by number.
    registers: u16,
    /// One bit for each 8 bytes of the stack below its position at the function's start.
    slots: u128,
    /// The growth of the stack since then, in bytes.
    depth: u64,
}

/// The calls of and jumps to given functions.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// The return addresses of calls.
    pub(crate) calls: BTreeSet<u64>,
    /// The addresses of jumps to their entries.
    pub(crate) jumps: BTreeSet<u64>,
}

/// Registers that a call may overwrite: rax, rcx, rdx, rsi, rdi, r8 to r11.
const LOST: u16 = 0b1111_1100_0111;

/// Finds calls and jumps: direct ones, and those through a register or the stack.
pub(crate) fn reach(
    code: &[Instruction],
    symbols: &BTreeMap<u64, Vec<String>>,
    targets: &BTreeSet<u64>,
) -> Reached {
    let mut reached = Reached::default();
    // Kernels with the usual code model never load addresses, so they can skip this.
    let large = code.iter().any(|instruction| loads(instruction, targets));
    let held = if large { Flow::new(code, targets).run(symbols) } else { Vec::new() };
    for (index, at) in code.iter().enumerate() {
        let near = || targets.contains(&at.near_branch_target());
        let far = || held.get(index).copied().flatten().is_some_and(|held| held.has(at, 0));
        match at.flow_control() {
            FlowControl::Call if near() => reached.calls.insert(at.next_ip()),
            FlowControl::IndirectCall if far() => reached.calls.insert(at.next_ip()),
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch if near() => {
                reached.jumps.insert(at.ip())
            }
            FlowControl::IndirectBranch if far() => reached.jumps.insert(at.ip()),
            _ => false,
        };
    }
    reached
}

/// Finds the calls through a pointer that no instruction of the function loaded as a constant.
pub(crate) fn through_pointers(
    code: &[Instruction],
    symbols: &BTreeMap<u64, Vec<String>>,
) -> BTreeSet<u64> {
    let mut info = InstructionInfoFactory::new();
    // Registers with a constant as their last value, in the order of the code.
    let mut constant = 0_u16;
    let mut found = BTreeSet::new();
    for at in code {
        if symbols.contains_key(&at.ip()) {
            constant = 0;
        }
        if at.flow_control() == FlowControl::IndirectCall {
            let known = at.op0_kind() == OpKind::Register && constant & bit(at.op0_register()) != 0;
            if !known {
                found.insert(at.next_ip());
            }
            // At boot, x86 patches paravirtual calls into direct calls of 5 bytes.
            let table = || symbols.range(..=at.ip_rel_memory_address()).next_back();
            let paravirtual = |(_, names): (_, &Vec<String>)| names.iter().any(|n| n == "pv_ops");
            if at.is_ip_rel_memory_operand() && table().is_some_and(paravirtual) {
                found.insert(at.ip() + 5);
            }
        }
        constant &= !written(&mut info, at);
        if matches!(at.code(), Code::Mov_r64_imm64 | Code::Mov_r32_imm32) {
            constant |= bit(at.op0_register());
        }
    }
    found
}

fn loads(instruction: &Instruction, targets: &BTreeSet<u64>) -> bool {
    matches!(instruction.code(), Code::Mov_r64_imm64 | Code::Mov_r32_imm32)
        && targets.contains(&instruction.immediate(1))
}

/// Returns the registers that the instruction overwrites.
fn written(info: &mut InstructionInfoFactory, instruction: &Instruction) -> u16 {
    let call = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
    let mut all = if call { LOST } else { 0 };
    for used in info.info(instruction).used_registers() {
        if matches!(
            used.access(),
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        ) {
            all |= bit(used.register());
        }
    }
    all
}

struct Flow<'c> {
    code: &'c [Instruction],
    targets: &'c BTreeSet<u64>,
    /// One entry for each instruction; `None` if no path reaches it.
    held: Vec<Option<Held>>,
    info: InstructionInfoFactory,
}

impl<'c> Flow<'c> {
    fn new(code: &'c [Instruction], targets: &'c BTreeSet<u64>) -> Flow<'c> {
        Flow { code, targets, held: vec![None; code.len()], info: InstructionInfoFactory::new() }
    }

    fn run(mut self, symbols: &BTreeMap<u64, Vec<String>>) -> Vec<Option<Held>> {
        let mut starts: Vec<usize> =
            symbols.keys().filter_map(|start| self.index(*start)).collect();
        starts.push(self.code.len());
        for part in starts.windows(2) {
            let loads = |at: &Instruction| loads(at, self.targets);
            if self.code[part[0]..part[1]].iter().any(loads) {
                // The compiler moves some parts away and reaches them only by jumps. Starting there
                // with an empty state is harmless, because states are only merged.
                self.follow(part[0], Held::default());
                self.follow_tables(part[0], part[1]);
            }
        }
        self.held
    }

    fn index(&self, address: u64) -> Option<usize> {
        self.code.binary_search_by_key(&address, Instruction::ip).ok()
    }

    /// Enters code that only a jump table reaches, with the merged state of all table jumps.
    fn follow_tables(&mut self, start: usize, end: usize) {
        let jumps = (start..end)
            .filter(|at| self.code[*at].flow_control() == FlowControl::IndirectBranch)
            .filter_map(|at| self.held[at]);
        let Some(held) = jumps.reduce(Held::or) else { return };
        for at in start..end {
            if self.held[at].is_none() {
                self.follow(at, held);
            }
        }
    }

    /// Follows the code from one instruction until the states stop changing.
    fn follow(&mut self, start: usize, held: Held) {
        let mut open = vec![(start, held)];
        while let Some((mut at, mut held)) = open.pop() {
            while at < self.code.len() {
                let known = self.held[at];
                let merged = known.map_or(held, |known| known.or(held));
                if known == Some(merged) {
                    break;
                }
                self.held[at] = Some(merged);
                let instruction = &self.code[at];
                let flow = instruction.flow_control();
                held = self.after(instruction, merged);
                if matches!(flow, FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch)
                {
                    let target = self.index(instruction.near_branch_target());
                    open.extend(target.map(|target| (target, held)));
                }
                if matches!(
                    flow,
                    FlowControl::UnconditionalBranch
                        | FlowControl::IndirectBranch
                        | FlowControl::Return
                ) {
                    break;
                }
                at += 1;
            }
        }
    }

    fn after(&mut self, instruction: &Instruction, mut held: Held) -> Held {
        let loads = loads(instruction, self.targets);
        let moves = instruction.mnemonic() == Mnemonic::Mov && instruction.op_count() == 2;
        let source = loads || (moves && held.has(instruction, 1));
        held.registers &= !written(&mut self.info, instruction);
        if moves {
            held.set(instruction, source);
        }
        if !matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            held.grow(instruction);
        }
        held
    }
}

/// Returns the register's bit, or 0 if it is not a general register.
fn bit(register: Register) -> u16 {
    let register = register.full_register();
    if register.is_gpr() { 1 << register.number() } else { 0 }
}

impl Held {
    /// Merges two states: a place may hold the address if it does in either.
    fn or(self, other: Held) -> Held {
        Held {
            registers: self.registers | other.registers,
            slots: self.slots | other.slots,
            ..self
        }
    }

    /// Whether an operand holds the address.
    fn has(&self, instruction: &Instruction, operand: u32) -> bool {
        match instruction.op_kind(operand) {
            OpKind::Register => {
                let register = instruction.op_register(operand);
                register.is_gpr64() && self.registers & bit(register) != 0
            }
            OpKind::Memory => self.slot(instruction).is_some_and(|slot| self.slots & slot != 0),
            _ => false,
        }
    }

    /// Records whether the first operand holds the address now.
    fn set(&mut self, instruction: &Instruction, has: bool) {
        match instruction.op_kind(0) {
            OpKind::Register if has => self.registers |= bit(instruction.op_register(0)),
            OpKind::Memory => match self.slot(instruction) {
                Some(slot) if has => self.slots |= slot,
                Some(slot) => self.slots &= !slot,
                None => {}
            },
            _ => {}
        }
    }

    /// The stack slot that an instruction accesses.
    fn slot(&self, instruction: &Instruction) -> Option<u128> {
        let on_stack = instruction.memory_base() == Register::RSP
            && instruction.memory_index() == Register::None;
        let below = self.depth.checked_sub(instruction.memory_displacement64())?;
        (on_stack && below % 8 == 0).then(|| 1_u128.checked_shl((below / 8) as u32)).flatten()
    }

    fn grow(&mut self, instruction: &Instruction) {
        let by = match instruction.mnemonic() {
            Mnemonic::Sub | Mnemonic::Add if instruction.op_register(0) == Register::RSP => {
                let by = instruction.try_immediate(1).unwrap_or(0);
                if instruction.mnemonic() == Mnemonic::Sub { by } else { by.wrapping_neg() }
            }
            Mnemonic::Push | Mnemonic::Pop => {
                (instruction.stack_pointer_increment() as i64 as u64).wrapping_neg()
            }
            _ => 0,
        };
        self.depth = self.depth.wrapping_add(by);
    }
}
