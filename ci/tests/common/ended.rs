//! Guests end with their runner, however it ends.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The number, the parent and the group of each process that has not ended.
fn processes() -> Vec<[u32; 3]> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let stat = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let process = |stat: String| {
        let id = stat.split(' ').next()?.parse().ok()?;
        // The name may contain anything.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let is_alive = fields.next()? != "Z";
        let mut number = || fields.next()?.parse().ok();
        is_alive.then_some([id, number()?, number()?])
    };
    stat.filter_map(process).collect()
}

/// The process group of a runner's guest, as soon as there is one.
fn guest(runner: &mut Child) -> u32 {
    let id = runner.id();
    let is_guest = |[it, parent, group]: &[u32; 3]| *parent == id && group == it;
    loop {
        if let Some(guest) = processes().into_iter().find(is_guest) {
            return guest[0];
        }
        assert!(runner.try_wait().expect("a child").is_none(), "the runner has ended");
        sleep(Duration::from_millis(10));
    }
}

/// Starts a runner whose guest does not end. Sends each signal to one. A shell may have started the
/// tests with SIGINT ignored.
#[track_caller]
pub fn assert_ends_with_its_runner(command: &mut Command, mut begin: impl FnMut(&mut Child)) {
    for signal in [Signal::KILL, Signal::TERM] {
        let mut runner = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let group = guest(&mut runner);
        begin(&mut runner);
        kill_process(Pid::from_child(&runner), signal).expect("it runs");
        runner.wait().expect("a child");
        let late = Instant::now() + Duration::from_secs(60);
        while processes().iter().any(|it| it[2] == group) {
            if Instant::now() > late {
                let group = Pid::from_raw(group as i32).expect("a group");
                let _ = kill_process_group(group, Signal::KILL);
                panic!("after {signal:?} the guest goes on");
            }
            sleep(Duration::from_millis(10));
        }
    }
}
