//! Measures the cost of kcov in a guest and prints it as tables: for system calls in each mode of the
//! kernel, for the crate, by the length of a trace and the size of the buffer, for remote sections,
//! and for whole programs. The page "Costs" of the book has the commands and explains the columns.

mod bursts;
mod calls;
mod modes;
mod program;

use std::error::Error;

cfg_if::cfg_if! {
    if #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))] {
        mod linux;
        #[path = "../uring/linux.rs"]
        mod uring;
        use linux::print_others;
    } else {
        /// Other systems have only the table of calls.
        fn print_others(_: u32) -> Result<(), Box<dyn Error>> {
            Ok(())
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [word, rounds] if word == "alone" => calls::print(rounds.parse()?, &[]),
        [word, rounds, program @ ..] if word == "program" && !program.is_empty() => {
            program::print(rounds.parse()?, program)
        }
        [rounds] => {
            let rounds = rounds.parse()?;
            calls::print(rounds, &modes::all()?)?;
            print_others(rounds)
        }
        _ => Err("usage: cost [alone] ROUNDS, or cost program ROUNDS PROGRAM [ARGUMENT...]".into()),
    }
}
