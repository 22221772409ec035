//! The models' state machines as pages: tables and diagrams for the documentation.
//!
//! States are not written down: a state is led to by operations, and where another operation leads
//! from there is found by asking what everything would come to then.

use super::linux::{self, Linux};
use super::netbsd::{self, NetBsd};
use super::{
    Access, D, Driver, Geometry, Handle, M, Memory, Operation, Outcome, PAGE, Remote, Request, T,
    World,
};
use std::fmt::Write as _;

/// The thread whose view it is, and another one.
const OWN: T = T(1);
const OTHER: T = T(2);
/// The device whose states these are, and another one, which is sized.
const DEVICE: D = D(0);
const SECOND: D = D(1);
const WORDS: u64 = 512;

/// Something with a name: how a state is come to, or what can be done in it.
type Named = (&'static str, Vec<Operation>);

/// What a page is about.
struct Board<R> {
    title: &'static str,
    driver: R,
    states: Vec<Named>,
    acts: Vec<Named>,
    /// Tell states apart that no single operation does.
    probes: Vec<Vec<Operation>>,
}

/// The page about Linux, in Markdown.
#[must_use]
pub fn linux() -> String {
    let board = |title, local_and_remote| {
        let kernel = linux::Kernel { comparisons: true, bounds_count: true, local_and_remote };
        let remote = |thread, descriptor, handle| ask(thread, descriptor, remote(handle));
        let enabled = |thread| vec![sized(), ask(thread, DEVICE, Request::Enable(0))];
        let collecting = |thread| vec![sized(), remote(thread, DEVICE, 1)];
        Board {
            title,
            driver: Linux::new(kernel),
            states: vec![
                ("unsized", vec![]),
                ("sized", vec![sized()]),
                ("traces this thread", enabled(OWN)),
                ("traces another thread", enabled(OTHER)),
                ("collects for this thread", collecting(OWN)),
                ("collects for another thread", collecting(OTHER)),
            ],
            acts: vec![
                ("size", vec![sized()]),
                ("size 1", vec![ask(OWN, DEVICE, Request::Size(1))]),
                ("map", map()),
                ("enable", vec![ask(OWN, DEVICE, Request::Enable(0))]),
                ("enable, unknown mode", vec![ask(OWN, DEVICE, Request::Enable(2))]),
                ("disable", vec![ask(OWN, DEVICE, Request::Disable(0))]),
                ("disable, argument 1", vec![ask(OWN, DEVICE, Request::Disable(1))]),
                ("enable remotely", vec![remote(OWN, DEVICE, 1)]),
                ("enable another device", vec![ask(OWN, SECOND, Request::Enable(0))]),
                ("enable another remotely", vec![remote(OWN, SECOND, 2)]),
                ("another with its handle", vec![remote(T(0), SECOND, 1)]),
                ("other thread disables", vec![ask(OTHER, DEVICE, Request::Disable(0))]),
                ("this thread ends", ends(OWN)),
                ("other thread ends", ends(OTHER)),
            ],
            probes: vec![],
        }
    };
    page(
        "linux",
        &[
            board("Before Linux 7.2: a thread has one instance at most", false),
            board("Since Linux 7.2: one for itself and one remotely", true),
        ],
    )
}

/// The page about NetBSD, in Markdown.
#[must_use]
pub fn netbsd() -> String {
    let board = |title, attaches| {
        let kernel = netbsd::Kernel { attaches, ports: u64::from(attaches) };
        let enabled = |thread| vec![sized(), ask(thread, DEVICE, Request::Enable(1))];
        let attached = || ask(OWN, DEVICE, Request::Attach(0, 0));
        let mut states = vec![
            ("unsized", vec![]),
            ("sized", vec![sized()]),
            ("traces this thread", enabled(OWN)),
            ("traces another thread", enabled(OTHER)),
            ("traced a thread that ended", [enabled(OTHER), ends(OTHER)].concat()),
        ];
        let mut acts = vec![
            ("size", vec![sized()]),
            ("size 1", vec![ask(OWN, DEVICE, Request::Size(1))]),
            ("map", map()),
            ("enable", vec![ask(OWN, DEVICE, Request::Enable(1))]),
            ("enable, unknown mode", vec![ask(OWN, DEVICE, Request::Enable(3))]),
            ("disable", vec![ask(OWN, DEVICE, Request::Disable(0))]),
            ("enable another device", vec![ask(OWN, SECOND, Request::Enable(1))]),
            ("other thread disables", vec![ask(OTHER, DEVICE, Request::Disable(0))]),
            ("this thread ends", ends(OWN)),
            ("other thread ends", ends(OTHER)),
        ];
        let mut probes = Vec::new();
        if attaches {
            let enable = || ask(OWN, DEVICE, Request::Enable(1));
            let detach = || ask(OWN, DEVICE, Request::Detach);
            states.extend([
                ("attached, unsized", vec![attached()]),
                ("attached, sized", vec![sized(), attached()]),
                ("collects, unsized", vec![attached(), enable()]),
                ("collects, sized", vec![sized(), attached(), enable()]),
            ]);
            acts.extend([("attach", vec![attached()]), ("detach", vec![detach()])]);
            probes.push(vec![detach(), enable()]);
        }
        Board { title, driver: NetBsd::new(kernel), states, acts, probes }
    };
    page("netbsd", &[board("NetBSD 9", false), board("NetBSD 10", true)])
}

fn ask(thread: T, descriptor: D, request: Request) -> Operation {
    Operation::Ask { thread, descriptor, request }
}

fn sized() -> Operation {
    ask(OWN, DEVICE, Request::Size(WORDS))
}

fn map() -> Vec<Operation> {
    let geometry =
        Geometry { bytes: PAGE, offset: 0, writable: true, executable: false, private: false };
    let (thread, map) = (OWN, M(0));
    vec![
        Operation::Map { thread, descriptor: DEVICE, map, geometry },
        Operation::Unmap { thread, map },
    ]
}

fn remote(handle: u16) -> Request {
    Request::RemoteEnable(Remote {
        mode: 0,
        area: 512,
        common: Handle::Zero,
        handles: vec![Handle::Usb(handle)],
        fill: 0,
        memory: Memory::Whole,
    })
}

/// Its name is taken by a new one, so that the view stays.
fn ends(thread: T) -> Vec<Operation> {
    vec![Operation::EndThread { thread }, Operation::StartThread { thread: T(0), new: thread }]
}

/// Does the operations. What each may come to, and the world after all of them.
fn follow<R: Driver>(world: &World<R>, operations: &[Operation]) -> (Vec<Vec<Outcome>>, World<R>) {
    let mut outcomes = Vec::new();
    let mut world = world.clone();
    for (index, operation) in operations.iter().enumerate() {
        // What a refused one has not made cannot be taken away.
        if index > 0 && !world.possible(operation) {
            continue;
        }
        let steps = world.clone().step(operation);
        outcomes.push(steps.iter().map(|(outcome, _)| outcome.clone()).collect());
        let done = steps.iter().position(|(outcome, _)| *outcome == Outcome::Done);
        world = steps.into_iter().nth(done.unwrap_or(0)).expect("it comes to something").1;
    }
    (outcomes, world)
}

impl<R: Driver> Board<R> {
    fn start(&self) -> World<R> {
        let open =
            |descriptor| Operation::Open { thread: T(0), descriptor, access: Access::ReadWrite };
        let start = |new| Operation::StartThread { thread: T(0), new };
        let size = ask(T(0), SECOND, Request::Size(WORDS));
        let before = [start(OWN), start(OTHER), open(DEVICE), open(SECOND), size];
        follow(&World::new(self.driver.clone()), &before).1
    }

    fn state(&self, number: usize) -> World<R> {
        follow(&self.start(), &self.states[number].1).1
    }

    /// What everything comes to, which is all that a state is.
    fn signature(&self, world: &World<R>) -> Vec<Vec<Vec<Outcome>>> {
        let acts = self.acts.iter().map(|(_, act)| act).chain(&self.probes);
        acts.map(|act| follow(world, act).0).collect()
    }

    /// For each state and act: what it comes to, and the state after it if that is another one.
    fn transitions(&self) -> Vec<Vec<(Vec<Outcome>, Option<usize>)>> {
        let states: Vec<_> = (0..self.states.len()).map(|number| self.state(number)).collect();
        let signatures: Vec<_> = states.iter().map(|world| self.signature(world)).collect();
        let from = |(number, world): (usize, &World<R>)| {
            let to = |(_, act): &Named| {
                let (mut outcomes, after) = follow(world, act);
                let after = self.signature(&after);
                let same = |signature: &Vec<_>| *signature == after;
                let next =
                    if same(&signatures[number]) { None } else { signatures.iter().position(same) };
                (outcomes.swap_remove(0), next)
            };
            self.acts.iter().map(to).collect()
        };
        states.iter().enumerate().map(from).collect()
    }
}

const WRITING: &str = "writing to a string cannot fail";

fn page<R: Driver>(system: &str, boards: &[Board<R>]) -> String {
    let mut page = format!(
        "<!-- Generated by `kcov-conformance reference` from the model of the driver. -->\n\
         # What operations come to: {}\n\n\
         What each operation comes to in each state of a device, as a thread sees it: `ok` or the \
         error, and the state after it if that is another one. Several outcomes are all allowed.\n",
        if system == "linux" { "Linux" } else { "NetBSD" }
    );
    for board in boards {
        write!(page, "\n## {}\n\n", board.title).expect(WRITING);
        write(&mut page, board);
    }
    page
}

fn write<R: Driver>(page: &mut String, board: &Board<R>) {
    let transitions = board.transitions();
    let name = |number: usize| board.states[number].0;
    page.push_str("| |");
    for number in 0..board.states.len() {
        write!(page, " {} |", name(number)).expect(WRITING);
    }
    page.push_str("\n|---|");
    page.push_str(&"---|".repeat(board.states.len()));
    page.push('\n');
    for (column, (act, _)) in board.acts.iter().enumerate() {
        write!(page, "| **{act}**").expect(WRITING);
        for row in &transitions {
            let (outcomes, next) = &row[column];
            let words: Vec<_> = outcomes.iter().map(word).collect();
            write!(page, " | {}", words.join(" or ")).expect(WRITING);
            if let Some(next) = next {
                write!(page, " → *{}*", name(*next)).expect(WRITING);
            }
        }
        page.push_str(" |\n");
    }
}

fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "ok".to_owned(),
        Outcome::Refused(errno) => (*errno).to_owned(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{linux, netbsd};

    #[test]
    fn where_an_operation_leads_is_found() {
        let page = linux();
        let row = page.lines().find(|line| line.starts_with("| **enable** |")).expect("a row");
        assert_eq!(
            row,
            "| **enable** | EINVAL | ok → *traces this thread* | EINVAL | EINVAL | EINVAL | EINVAL |"
        );
        let page = netbsd();
        assert!(page.contains("EBUSY or ok"), "{page}");
    }
}
