//! Which registers and which places on the stack may have the hook's address, followed along the
//! control flow of all code.

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use kcov::Pc;
use std::collections::BTreeSet;

/// What has the address before an instruction.
#[derive(Clone, Copy, Default, PartialEq)]
struct Held {
    /// A bit for each general register, by its number.
    registers: u16,
    /// A bit for each 8 bytes of the stack below what it was when the function began.
    slots: u128,
    /// How far the stack has grown since then, in bytes.
    depth: u64,
}

/// Registers that a call leaves with something else: rax, rcx, rdx, rsi, rdi, r8 to r11.
const LOST: u16 = 0b1111_1100_0111;

/// The calls through a register or the stack.
pub fn calls(code: &[Instruction], starts: &BTreeSet<u64>, hook: u64) -> Vec<Pc> {
    // Kernels of the usual code model take the address nowhere, and need none of this.
    if !code.iter().any(|instruction| loads(instruction, hook)) {
        return Vec::new();
    }
    let held = Flow::new(code, hook).run(starts);
    let of = |(at, held): (&Instruction, &Option<Held>)| {
        let calls = at.flow_control() == FlowControl::IndirectCall
            && held.is_some_and(|held| held.has(at, 0));
        calls.then(|| Pc::new(at.next_ip()))
    };
    code.iter().zip(&held).filter_map(of).collect()
}

fn loads(instruction: &Instruction, hook: u64) -> bool {
    matches!(instruction.code(), Code::Mov_r64_imm64 | Code::Mov_r32_imm32)
        && instruction.immediate(1) == hook
}

struct Flow<'c> {
    code: &'c [Instruction],
    hook: u64,
    /// By instruction; nothing where it was not seen that control comes there.
    held: Vec<Option<Held>>,
    info: InstructionInfoFactory,
}

impl<'c> Flow<'c> {
    fn new(code: &'c [Instruction], hook: u64) -> Flow<'c> {
        Flow { code, hook, held: vec![None; code.len()], info: InstructionInfoFactory::new() }
    }

    fn run(mut self, starts: &BTreeSet<u64>) -> Vec<Option<Held>> {
        let addresses: Vec<u64> = starts.iter().copied().collect();
        let starts: Vec<usize> = addresses.iter().filter_map(|start| self.index(*start)).collect();
        for start in &starts {
            // Parts that the compiler has moved away are jumped to, and no call comes there with
            // anything: adding nothing does not harm them.
            self.follow(*start, Held::default());
        }
        for (number, start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(self.code.len());
            self.follow_tables(*start, end);
        }
        self.held
    }

    fn index(&self, address: u64) -> Option<usize> {
        self.code.binary_search_by_key(&address, Instruction::ip).ok()
    }

    /// What is only reached through a table of jumps is entered with what was held at one.
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

    /// From one place on, until nothing new is learned.
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
        let loads = loads(instruction, self.hook);
        let moves = instruction.mnemonic() == Mnemonic::Mov && instruction.op_count() == 2;
        let source = loads || (moves && held.has(instruction, 1));
        for used in self.info.info(instruction).used_registers() {
            let written = matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            );
            held.registers &= if written { !bit(used.register()) } else { !0 };
        }
        if moves {
            held.set(instruction, source);
        }
        if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            held.registers &= !LOST;
        } else {
            held.grow(instruction);
        }
        held
    }
}

/// Nothing for what is no general register.
fn bit(register: Register) -> u16 {
    let register = register.full_register();
    if register.is_gpr() { 1 << register.number() } else { 0 }
}

impl Held {
    /// What may be held, coming from either.
    fn or(self, other: Held) -> Held {
        Held {
            registers: self.registers | other.registers,
            slots: self.slots | other.slots,
            ..self
        }
    }

    /// Whether an operand has the address.
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

    /// Says whether the first operand has it now.
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

    /// The place on the stack that an instruction is about.
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
