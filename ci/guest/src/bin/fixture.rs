//! A guest program that misbehaves on request, to test the runner. It performs
//! its arguments' actions in order:
//!
//! ```text
//! out TEXT        print a line on standard output
//! err TEXT        print a line on standard error
//! write FILE TEXT write a line to a file, such as the channel's device
//! lkdtm POINT     make the kernel crash or complain (PANIC, EXCEPTION, …)
//! sysrq KEY       the same with the magic key
//! loopback        connect to itself over TCP
//! fill            allocate memory until none is left
//! orphan          leave a process behind that holds the output open
//! sleep SECONDS   wait
//! hang            never return
//! power-off       shut the guest down
//! signal NUMBER   die by a signal
//! status NUMBER   exit
//! ```

use kcov_vm_guest::job::Shutdown;
use kcov_vm_guest::sys;
use rustix::process::{Signal, getpid, kill_process};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, exit};
use std::thread::sleep;
use std::time::Duration;
use std::{env, fs, io};

fn main() {
    let mut words = env::args().skip(1);
    while let Some(action) = words.next() {
        let mut word = || {
            words.next().unwrap_or_else(|| {
                eprintln!("kcov-vm-fixture: {action} needs a value");
                exit(2);
            })
        };
        if let Err(error) = act(&action, &mut word) {
            eprintln!("kcov-vm-fixture: {action}: {error}");
            exit(3);
        }
    }
}

fn act(action: &str, word: &mut dyn FnMut() -> String) -> io::Result<()> {
    match action {
        "out" => writeln!(io::stdout(), "{}", word()),
        "err" => writeln!(io::stderr(), "{}", word()),
        "write" => {
            let path = word();
            let mut file = fs::OpenOptions::new().write(true).open(path)?;
            writeln!(file, "{}", word())
        }
        "lkdtm" => fs::write("/sys/kernel/debug/provoke-crash/DIRECT", word()),
        "sysrq" => fs::write("/proc/sysrq-trigger", word()),
        "loopback" => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            TcpStream::connect(listener.local_addr()?).map(drop)
        }
        "fill" => {
            let mut taken = Vec::new();
            loop {
                taken.push(std::hint::black_box(vec![1_u8; 1 << 20]));
            }
        }
        "orphan" => Command::new(env::current_exe()?).arg("hang").spawn().map(drop),
        "sleep" => {
            sleep(Duration::from_secs(number(&word())?));
            Ok(())
        }
        "hang" => loop {
            sleep(Duration::from_secs(3600));
        },
        "power-off" => sys::go_down(Shutdown::PowerOff),
        "signal" => {
            let number: i32 = number(&word())?;
            let signal = Signal::from_named_raw(number)
                .ok_or_else(|| io::Error::other(format!("no signal {number}")))?;
            Ok(kill_process(getpid(), signal)?)
        }
        "status" => exit(number(&word())?),
        _ => Err(io::Error::other("no such action")),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.parse().map_err(|_| io::Error::other(format!("`{text}` is not a number")))
}
