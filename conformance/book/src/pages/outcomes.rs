//! The state machines of the drivers' models as tables.
//!
//! The code does not list states. A sequence of operations leads to each state, and two states are
//! equal if every operation has the same result in both.

use kcov_model::linux::Linux;
use kcov_model::netbsd::NetBsd;
use kcov_model::*;
use serde_json::{Value, json};

/// The thread from whose view the table is, and another thread.
const OWN: T = T(1);
const OTHER: T = T(2);
/// The device under test, and a second device that is already sized.
const DEVICE: D = D(0);
const SECOND: D = D(1);
const SIZE: Request = Request::Size(512);

/// A device without descriptors that records nothing.
const GONE: &str = "gone";

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

/// The tables of both systems, for the templates.
pub(super) fn tables() -> [Value; 2] {
    [value(&linux_boards()), value(&netbsd_boards())]
}

fn value<R: Driver + Clone + 'static>(boards: &[Board<R>]) -> Value {
    let table = |board: &Board<R>| {
        let rows: Vec<_> = board.acts.iter().map(|(act, _)| (act, Vec::new())).collect();
        let rows = board.transitions().into_iter().fold(rows, |mut rows, column| {
            for (row, (outcomes, next)) in rows.iter_mut().zip(column) {
                let words: Vec<_> = outcomes.iter().map(word).collect();
                row.1.push(json!({ "words": words, "next": next }));
            }
            rows
        });
        let states: Vec<_> = board.states.iter().map(|(name, _)| name).collect();
        json!({ "title": board.title, "states": states, "rows": rows })
    };
    let order = R::order().iter().map(|(request, rules)| {
        let rule = |rule: &Rule<R>| (word(&Outcome::Refused(rule.reason.errno)), rule.reason.when);
        json!({ "request": request, "rules": rules.iter().map(rule).collect::<Vec<_>>() })
    });
    json!({
        "boards": boards.iter().map(table).collect::<Vec<_>>(),
        "order": order.collect::<Vec<_>>(),
    })
}

fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "ok".to_owned(),
        Outcome::Refused(errno) => format!("{errno:?}"),
        other => format!("{other:?}"),
    }
}

fn ask(thread: T, descriptor: D, request: Request) -> Operation {
    Operation::Ask { thread, descriptor, request }
}

fn sized() -> Operation {
    ask(OWN, DEVICE, SIZE)
}

/// Collects from the USB handle with this number.
fn remote(thread: T, descriptor: D, number: u64) -> Operation {
    let handle = Handle(kcov_sys::linux::KCOV_SUBSYSTEM_USB | number);
    ask(thread, descriptor, Request::RemoteEnable(Remote::new(Handle(0), vec![handle])))
}

/// Ends the thread and starts another with the same number, so that later acts still have it.
fn ends(thread: T) -> Vec<Operation> {
    vec![Operation::EndThread { thread }, Operation::StartThread { thread: T(0), new: thread }]
}

/// Then closes the device's only descriptor.
fn closed(mut operations: Vec<Operation>) -> Vec<Operation> {
    operations.push(Operation::Close { thread: OWN, descriptor: DEVICE });
    operations
}

/// The acts of both systems, with the numbers of PC mode and of an unknown mode.
fn acts(mode: u64, unknown: u64) -> Vec<Named> {
    let (thread, map, geometry) = (OWN, M(0), Geometry::of(4096, true));
    let mapped = Operation::Map { thread, descriptor: DEVICE, map, geometry };
    let enable = |thread, descriptor, mode| vec![ask(thread, descriptor, Request::Enable(mode))];
    vec![
        ("set size", vec![sized()]),
        ("set size 1", vec![ask(OWN, DEVICE, Request::Size(1))]),
        ("map", vec![mapped, Operation::Unmap { thread, map }]),
        ("enable", enable(OWN, DEVICE, mode)),
        ("enable, unknown mode", enable(OWN, DEVICE, unknown)),
        ("disable", vec![ask(OWN, DEVICE, Request::Disable(0))]),
        ("enable another device", enable(OWN, SECOND, mode)),
        ("other thread disables", vec![ask(OTHER, DEVICE, Request::Disable(0))]),
        ("other thread enables another device", enable(OTHER, SECOND, mode)),
        ("this thread exits", ends(OWN)),
        ("other thread exits", ends(OTHER)),
        ("last close", closed(vec![])),
    ]
}

/// By version, the newest last.
fn linux_boards() -> [Board<Linux>; 2] {
    let board = |title, local_and_remote| {
        let enabled = |thread| vec![sized(), ask(thread, DEVICE, Request::Enable(0))];
        let collecting = |thread| vec![sized(), remote(thread, DEVICE, 1)];
        let mut acts = acts(0, 2);
        acts.extend([
            ("disable, argument 1", vec![ask(OWN, DEVICE, Request::Disable(1))]),
            ("enable remotely", vec![remote(OWN, DEVICE, 1)]),
            ("enable another device remotely", vec![remote(OWN, SECOND, 2)]),
            ("enable another with the same handle", vec![remote(T(0), SECOND, 1)]),
        ]);
        Board {
            title,
            driver: Linux::new(linux::Kernel { local_and_remote, ..linux::Kernel::LATEST }),
            states: vec![
                ("unsized", vec![]),
                ("sized", vec![sized()]),
                ("enabled by this thread", enabled(OWN)),
                ("enabled by another thread", enabled(OTHER)),
                ("remote for this thread", collecting(OWN)),
                ("remote for another thread", collecting(OTHER)),
                ("enabled, closed", closed(enabled(OWN))),
                ("remote, closed", closed(collecting(OWN))),
            ],
            acts,
            probes: vec![],
        }
    };
    [
        board("Before Linux 7.2: at most one device per thread", false),
        board("Since Linux 7.2: one local and one remote device per thread", true),
    ]
}

/// By version, the newest last.
fn netbsd_boards() -> [Board<NetBsd>; 2] {
    let board = |title, attaches| {
        let enable = || ask(OWN, DEVICE, Request::Enable(1));
        let enabled = |thread| vec![sized(), ask(thread, DEVICE, Request::Enable(1))];
        let mut states = vec![
            ("unsized", vec![]),
            ("sized", vec![sized()]),
            ("enabled by this thread", enabled(OWN)),
            ("enabled by another thread", enabled(OTHER)),
            ("enabled by a thread that exited", [enabled(OTHER), ends(OTHER)].concat()),
            ("enabled, closed", closed(enabled(OWN))),
        ];
        let (mut acts, mut probes) = (acts(1, 3), Vec::new());
        if attaches {
            let attach = |descriptor| ask(OWN, descriptor, Request::Attach(0, 0));
            let detach = |descriptor| ask(OWN, descriptor, Request::Detach);
            states.extend([
                ("attached, unsized", vec![attach(DEVICE)]),
                ("attached, sized", vec![sized(), attach(DEVICE)]),
                ("remote, unsized", vec![attach(DEVICE), enable()]),
                ("remote, sized", vec![sized(), attach(DEVICE), enable()]),
            ]);
            acts.extend([
                ("attach", vec![attach(DEVICE)]),
                ("detach", vec![detach(DEVICE)]),
                ("another device attaches and detaches", vec![attach(SECOND), detach(SECOND)]),
            ]);
            probes.push(vec![detach(DEVICE), enable()]);
        }
        let driver = NetBsd::new(netbsd::Kernel { attaches, ..netbsd::Kernel::LATEST });
        Board { title, driver, states, acts, probes }
    };
    [board("NetBSD 9", false), board("NetBSD 10", true)]
}

/// Executes the possible operations. Returns all outcomes of each, and the world afterwards.
fn follow<R: Driver + Clone>(
    world: &World<R>,
    operations: &[Operation],
) -> (Vec<Vec<Outcome>>, World<R>) {
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

impl<R: Driver + Clone> Board<R> {
    fn start(&self) -> World<R> {
        let open =
            |descriptor| Operation::Open { thread: T(0), descriptor, access: Access::ReadWrite };
        let start = |new| Operation::StartThread { thread: T(0), new };
        let size = ask(T(0), SECOND, SIZE);
        let before = [start(OWN), start(OTHER), open(DEVICE), open(SECOND), size];
        follow(&World::new(self.driver.clone()), &before).1
    }

    /// The outcomes of all acts and probes. Two states are the same if these are.
    fn signature(&self, world: &World<R>) -> Vec<Vec<Vec<Outcome>>> {
        let acts = self.acts.iter().map(|(_, act)| act).chain(&self.probes);
        acts.map(|act| follow(world, act).0).collect()
    }

    /// For each state and act: its outcomes, and the next state if it differs.
    fn transitions(&self) -> Vec<Vec<(Vec<Outcome>, Option<&'static str>)>> {
        let start = self.start();
        let gone = (GONE, closed(vec![]));
        let known: Vec<_> = self
            .states
            .iter()
            .chain([&gone])
            .map(|(name, path)| {
                let world = follow(&start, path).1;
                (*name, self.signature(&world), world)
            })
            .collect();
        let from = |(name, _, world): &(&'static str, _, World<R>)| {
            let to = |(_, act): &Named| {
                let (outcomes, after) = follow(world, act);
                let after = self.signature(&after);
                let next = known.iter().find(|(_, signature, _)| *signature == after);
                let next = next.map(|known| known.0).filter(|next| next != name);
                (outcomes.into_iter().next().unwrap_or_default(), next)
            };
            self.acts.iter().map(to).collect()
        };
        known[..self.states.len()].iter().map(from).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A device without descriptors that records nothing.
    pub(in super::super) const GONE: &str = super::GONE;

    /// An act that leads from one state to another: state, act, state.
    pub(in super::super) type Lead = [&'static str; 3];

    impl<R: Driver + Clone> Board<R> {
        fn leads(&self) -> Vec<Lead> {
            let rows = self.states.iter().zip(self.transitions());
            let leads = rows.flat_map(|((from, _), row)| {
                let acts = self.acts.iter().zip(row);
                acts.filter_map(|((act, _), (_, to))| Some([*from, *act, to?])).collect::<Vec<_>>()
            });
            leads.collect()
        }
    }

    /// All changes of state on the newest kernels.
    pub(in super::super) fn leads() -> [Vec<Lead>; 2] {
        [linux_boards()[1].leads(), netbsd_boards()[1].leads()]
    }

    #[test]
    fn where_an_operation_leads_is_found() {
        let [leads, _] = leads();
        assert!(leads.contains(&["sized", "enable", "enabled by this thread"]));
        assert!(leads.contains(&["enabled by this thread", "last close", "enabled, closed"]));
        assert!(leads.contains(&["enabled, closed", "this thread exits", GONE]));
        assert!(!leads.iter().any(|lead| lead[..2] == ["unsized", "enable"]));
        assert!(tables()[1].to_string().contains(r#"["EBUSY","ok"]"#), "it may lag behind");
    }

    /// A device comes into the same state whether its process executes a program before or after.
    #[test]
    fn execution_changes_no_state() {
        fn check<R: Driver + Clone>(board: &Board<R>) {
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
        linux_boards().iter().for_each(check);
        netbsd_boards().iter().for_each(check);
    }
}
