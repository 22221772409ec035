//! A guest program that misbehaves on request, to test the runner. It performs
//! its arguments' actions in order:
//!
//! ```text
//! out TEXT        print a line on standard output
//! err TEXT        print a line on standard error
//! write FILE TEXT write a line to a file, such as the channel's device
//! lkdtm POINT     make the kernel crash or complain (PANIC, EXCEPTION, …)
//! loopback        connect to itself over TCP
//! fill            allocate memory until none is left
//! fuzz POINT      fuzz under `kcov-vm fuzz`; inputs that begin with `die` do lkdtm
//!                 POINT, unless that is NONE
//! orphan          leave a process behind that holds the output open
//! sleep SECONDS   wait
//! hang            never return
//! power-off       shut the guest down
//! signal NUMBER   die by a signal
//! status NUMBER   exit
//! ```

use kcov_vm_guest::fuzz::{Link, Progress, name};
use kcov_vm_guest::job::Shutdown;
use kcov_vm_guest::sys;
use rustix::process::{Signal, getpid, kill_process};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, exit};
use std::thread::sleep;
use std::time::{Duration, Instant};
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
        "lkdtm" => crash(&word()),
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
        "fuzz" => fuzz(&word()),
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

fn crash(point: &str) -> io::Result<()> {
    fs::write("/sys/kernel/debug/provoke-crash/DIRECT", point)
}

/// A fuzzer whose coverage is the length of the prefix that an input shares with `die`.
fn fuzz(point: &str) -> io::Result<()> {
    let mut link = Link::open()?.ok_or_else(|| io::Error::other("needs `kcov-vm fuzz`"))?;
    let execute = |link: &mut Link, input: &[u8], parent: Option<&[u8]>| {
        link.run(input, parent.map(name));
        let reached = input.iter().zip(b"die").take_while(|(one, other)| one == other).count();
        if reached == 3 && point != "NONE" {
            crash(point)?;
        }
        Ok(reached)
    };
    if let Some(inputs) = link.replay()? {
        return inputs.iter().try_for_each(|input| execute(&mut link, input, None).map(drop));
    }
    let mut corpus = link.corpus()?;
    if corpus.is_empty() {
        corpus.push(b"some bytes".to_vec());
    }
    let (start, mut told) = (Instant::now(), Instant::now());
    let (mut state, mut progress) = (link.seed() | 1, Progress::default());
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    while start.elapsed() < link.time() {
        let parent = corpus[random(corpus.len())].clone();
        let mut input = parent.clone();
        let at = random(input.len());
        input[at] = random(256) as u8;
        let reached = execute(&mut link, &input, Some(&parent))?;
        progress.executions += 1;
        if reached as u64 > progress.signals {
            progress.signals = reached as u64;
            link.found(&input)?;
            link.reached(&[0x10])?;
            corpus.push(input);
        }
        if told.elapsed() > Duration::from_millis(200) {
            told = Instant::now();
            link.progress(&progress)?;
        }
    }
    Ok(())
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.parse().map_err(|_| io::Error::other(format!("`{text}` is not a number")))
}
