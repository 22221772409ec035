//! The models' state machines as pages: tables and diagrams for the documentation.
//!
//! States are not written down: a state is led to by operations, and where another operation leads
//! from there is found by asking what everything would come to then.

mod linux;
mod netbsd;

use super::{Access, D, Driver, Geometry, M, Operation, Outcome, PAGE, Request, T, World};
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
    page("Linux", &linux::boards())
}

/// The page about NetBSD, in Markdown.
#[must_use]
pub fn netbsd() -> String {
    page("NetBSD", &netbsd::boards())
}

/// What an act leads to in a state: another state, or [`GONE`]. By their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Where.
    pub from: &'static str,
    /// What is done.
    pub act: &'static str,
    /// Where it leads.
    pub to: &'static str,
}

/// What a device is that nobody has and that records nothing.
pub const GONE: &str = "gone";

/// All that leads to another state on the newest Linux.
#[must_use]
pub fn linux_leads() -> Vec<Lead> {
    linux::boards()[1].leads()
}

/// All that leads to another state on the newest NetBSD.
#[must_use]
pub fn netbsd_leads() -> Vec<Lead> {
    netbsd::boards()[1].leads()
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

/// Its name is taken by a new one, so that the view stays.
fn ends(thread: T) -> Vec<Operation> {
    vec![Operation::EndThread { thread }, Operation::StartThread { thread: T(0), new: thread }]
}

/// These, and then the device's one descriptor is closed.
fn closed(mut operations: Vec<Operation>) -> Vec<Operation> {
    operations.push(Operation::Close { thread: OWN, descriptor: DEVICE });
    operations
}

/// Does the operations that are possible. What each may come to, and the world after all of them.
fn follow<R: Driver>(world: &World<R>, operations: &[Operation]) -> (Vec<Vec<Outcome>>, World<R>) {
    let mut outcomes = Vec::new();
    let mut world = world.clone();
    for operation in operations {
        // What is closed cannot be asked, what a refused one has not made not be taken away.
        if !world.possible(operation) {
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

    /// For each state and act: what it comes to, if it can be done, and the name of the state after
    /// it if that is another one.
    fn transitions(&self) -> Vec<Vec<(Vec<Outcome>, Option<&'static str>)>> {
        let worlds: Vec<_> = (0..self.states.len()).map(|number| self.state(number)).collect();
        let named = self.states.iter().map(|(name, _)| *name).zip(&worlds);
        let mut known: Vec<_> = named.map(|(name, world)| (name, self.signature(world))).collect();
        known.push((GONE, self.signature(&follow(&self.start(), &closed(vec![])).1)));
        let from = |(number, world): (usize, &World<R>)| {
            let to = |(_, act): &Named| {
                let (outcomes, after) = follow(world, act);
                let after = self.signature(&after);
                let next = known.iter().find(|(_, signature)| *signature == after);
                let next = next.map(|(name, _)| *name).filter(|name| *name != known[number].0);
                (outcomes.into_iter().next().unwrap_or_default(), next)
            };
            self.acts.iter().map(to).collect()
        };
        worlds.iter().enumerate().map(from).collect()
    }

    fn leads(&self) -> Vec<Lead> {
        let mut leads = Vec::new();
        for ((from, _), row) in self.states.iter().zip(self.transitions()) {
            for ((act, _), (_, to)) in self.acts.iter().zip(row) {
                leads.extend(to.map(|to| Lead { from, act, to }));
            }
        }
        leads
    }
}

const WRITING: &str = "writing to a string cannot fail";

fn page<R: Driver>(system: &str, boards: &[Board<R>]) -> String {
    let mut page = format!(
        "<!-- Generated by `kcov-conformance reference` from the model of the driver. -->\n\
         # What operations come to: {}\n\n\
         What each operation comes to in each state of a device, as a thread sees it: `ok` or the \
         error, and the state after it if that is another one. Several outcomes are all allowed; – \
         stands where there is no descriptor to do it with.\n",
        system
    );
    for board in boards {
        write!(page, "\n## {}\n\n", board.title).expect(WRITING);
        write(&mut page, board);
    }
    page
}

fn write<R: Driver>(page: &mut String, board: &Board<R>) {
    let transitions = board.transitions();
    page.push_str("| |");
    for (name, _) in &board.states {
        write!(page, " {name} |").expect(WRITING);
    }
    page.push_str("\n|---|");
    page.push_str(&"---|".repeat(board.states.len()));
    page.push('\n');
    for (column, (act, _)) in board.acts.iter().enumerate() {
        write!(page, "| **{act}**").expect(WRITING);
        for row in &transitions {
            let (outcomes, next) = &row[column];
            let words: Vec<_> = outcomes.iter().map(word).collect();
            let words = if words.is_empty() { "–".to_owned() } else { words.join(" or ") };
            write!(page, " | {words}").expect(WRITING);
            if let Some(next) = next {
                write!(page, " → *{next}*").expect(WRITING);
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
    use super::*;

    #[test]
    fn where_an_operation_leads_is_found() {
        let leads = linux_leads();
        let lead = |from, act, to| leads.contains(&Lead { from, act, to });
        assert!(lead("sized", "enable", "enabled by this thread"));
        assert!(lead("enabled by this thread", "last close", "enabled, closed"));
        assert!(lead("enabled, closed", "this thread ends", GONE));
        assert!(!leads.iter().any(|lead| lead.from == "unsized" && lead.act == "enable"));
        let page = netbsd();
        assert!(page.contains("EBUSY or ok"), "{page}");
    }

    /// It is the same whether a program is executed before a device comes into its state or after.
    #[test]
    fn execution_changes_no_state() {
        fn check<R: Driver>(board: &Board<R>) {
            let mut execution = vec![Operation::Execute { thread: OWN, keep: true }];
            execution.extend([T(0), OTHER].map(|new| Operation::StartThread { thread: OWN, new }));
            // What another thread had enabled ends with it.
            let own = |(_, path): &&Named| path.iter().all(|step| step.thread() == OWN);
            let states: Vec<_> = board.states.iter().filter(own).collect();
            assert!(states.len() >= 4, "{}", board.title);
            for (name, path) in states {
                let sequence = |parts: [&[Operation]; 2]| {
                    board.signature(&follow(&board.start(), &parts.concat()).1)
                };
                let (before, after) = ([&execution[..], path], [&path[..], &execution]);
                assert_eq!(sequence(before), sequence(after), "{}: {name}", board.title);
            }
        }
        linux::boards().iter().for_each(check);
        netbsd::boards().iter().for_each(check);
    }
}
