//! The models' state machines as tables for the documentation.
//!
//! The code does not list states. A sequence of operations leads to each state, and two states are
//! equal if every operation has the same result in both.

mod linux;
mod netbsd;

use super::{Access, D, Driver, Geometry, M, Operation, Outcome, Request, T, World};
use std::fmt::Write as _;

/// The thread from whose view the table is, and another thread.
const OWN: T = T(1);
const OTHER: T = T(2);
/// The device under test, and a second device that is already sized.
const DEVICE: D = D(0);
const SECOND: D = D(1);
const WORDS: u64 = 512;

/// A name with the operations that lead to a state, or that form one act.
type Named = (&'static str, Vec<Operation>);

/// The contents of a table.
struct Board<R> {
    title: &'static str,
    driver: R,
    states: Vec<Named>,
    acts: Vec<Named>,
    /// These distinguish states that no single operation distinguishes.
    probes: Vec<Vec<Operation>>,
}

/// The Linux page, in Markdown.
#[must_use]
pub fn linux() -> String {
    page("Linux", &linux::boards())
}

/// The NetBSD page, in Markdown.
#[must_use]
pub fn netbsd() -> String {
    page("NetBSD", &netbsd::boards())
}

/// An act that leads from one state to another, or to [`GONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The state before.
    pub from: &'static str,
    /// The act.
    pub act: &'static str,
    /// The state after.
    pub to: &'static str,
}

/// A device without descriptors that records nothing.
pub const GONE: &str = "gone";

/// All changes of state on the newest Linux.
#[must_use]
pub fn linux_leads() -> Vec<Lead> {
    linux::boards()[1].leads()
}

/// All changes of state on the newest NetBSD.
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
    let geometry = Geometry {
        bytes: super::page(),
        offset: 0,
        writable: true,
        executable: false,
        private: false,
    };
    let (thread, map) = (OWN, M(0));
    vec![
        Operation::Map { thread, descriptor: DEVICE, map, geometry },
        Operation::Unmap { thread, map },
    ]
}

/// Ends the thread and starts a new one under its name, to keep the view.
fn ends(thread: T) -> Vec<Operation> {
    vec![Operation::EndThread { thread }, Operation::StartThread { thread: T(0), new: thread }]
}

/// Adds the close of the device's only descriptor.
fn closed(mut operations: Vec<Operation>) -> Vec<Operation> {
    operations.push(Operation::Close { thread: OWN, descriptor: DEVICE });
    operations
}

/// Executes the possible operations. Returns all outcomes of each, and the world afterwards.
fn follow<R: Driver>(world: &World<R>, operations: &[Operation]) -> (Vec<Vec<Outcome>>, World<R>) {
    let mut outcomes = Vec::new();
    let mut world = world.clone();
    for operation in operations {
        // A closed descriptor cannot be used, and a mapping that failed cannot be unmapped.
        if !world.possible(operation) {
            continue;
        }
        let steps = world.clone().step(operation);
        outcomes.push(steps.iter().map(|(outcome, _)| outcome.clone()).collect());
        let done = steps.iter().position(|(outcome, _)| *outcome == Outcome::Done);
        world = steps.into_iter().nth(done.unwrap_or(0)).expect("it has an outcome").1;
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

    /// The outcome of every act and probe. This defines the state.
    fn signature(&self, world: &World<R>) -> Vec<Vec<Vec<Outcome>>> {
        let acts = self.acts.iter().map(|(_, act)| act).chain(&self.probes);
        acts.map(|act| follow(world, act).0).collect()
    }

    /// For each state and act: its outcomes, and the next state if it differs.
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
        "<!-- Generated by `cargo vm pages` from the model of the driver. -->\n\
         # Result of each operation in each state: {}\n\n\
         Rows are operations, columns are states of a device from the view of one thread. A cell \
         shows `ok` or the errno, and → with the next state if it changes. If a cell lists several \
         results, the kernel may give any of them. – means that there is no descriptor for the \
         operation.\n",
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
    page.push_str("| Operation |");
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
        assert!(lead("enabled, closed", "this thread exits", GONE));
        assert!(!leads.iter().any(|lead| lead.from == "unsized" && lead.act == "enable"));
        let page = netbsd();
        assert!(page.contains("EBUSY or ok"), "{page}");
    }

    /// A device comes into the same state whether its process executes a program before or after.
    #[test]
    fn execution_changes_no_state() {
        fn check<R: Driver>(board: &Board<R>) {
            let mut execution = vec![Operation::Execute { thread: OWN, keep: true }];
            execution.extend([T(0), OTHER].map(|new| Operation::StartThread { thread: OWN, new }));
            // exec ends the other threads.
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
