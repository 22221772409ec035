//! The states of a device and the steps between them. Each step names its claims, and a test compares
//! the steps with the model of the driver.

use super::registry::{LINUX, NETBSD, Page, page_of};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The state machine of one driver.
#[derive(Deserialize, Serialize)]
pub(super) struct Machine {
    height: i32,
    requests: BTreeMap<String, String>,
    states: Vec<State>,
    steps: Vec<Step>,
    arrows: Vec<toml::Table>,
}

#[derive(Deserialize, Serialize)]
struct State {
    name: String,
    meaning: String,
    class: String,
    /// The model's states that it combines.
    seen: Vec<String>,
    /// Its position in the picture.
    at: (i32, i32),
}

/// A step between states. An empty name means before open or after the device is gone.
#[derive(Clone, Deserialize, Serialize)]
struct Step {
    from: String,
    to: String,
    /// A description, with placeholders from [`Machine::requests`].
    event: String,
    /// The acts in the model. Empty if the model's table does not contain them.
    acts: Vec<String>,
    claims: Vec<String>,
}

#[derive(Deserialize)]
struct Machines {
    /// Those of both systems.
    steps: Vec<Step>,
    linux: Machine,
    netbsd: Machine,
}

/// The machines of Linux and NetBSD.
pub(super) static MACHINES: LazyLock<[Machine; 2]> = LazyLock::new(|| {
    let text = include_str!("../../templates/states.toml");
    let Machines { steps, linux, netbsd } = toml::from_str(text).expect("states.toml");
    [linux, netbsd].map(|mut machine| {
        machine.steps.splice(0..0, steps.iter().cloned());
        machine
    })
});

/// The steps that a page's requests make. A step belongs to the page of its first claim.
pub(super) fn steps(page: &Page) -> Vec<Value> {
    let mut all = Vec::new();
    for (machine, system) in MACHINES.iter().zip([LINUX, NETBSD]) {
        let here = |step: &&Step| std::ptr::eq(page_of(&step.claims[0]), page);
        for step in machine.steps.iter().filter(here) {
            let (name, word, requests) = (system.name, system.word, &machine.requests);
            all.push(json!({ "step": step, "system": name, "word": word, "requests": requests }));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::outcomes::tests::{GONE, Lead, leads};
    use super::{LINUX, MACHINES, Machine, NETBSD, Step};
    use kcov_conformance::claims::Status;

    /// Each machine with the steps of the driver's model.
    fn all() -> impl Iterator<Item = (&'static Machine, Vec<Lead>)> {
        MACHINES.iter().zip(leads())
    }

    /// The state in the picture for a state of the model. None if another thread's state matters.
    fn shown(machine: &'static Machine, seen: &str) -> Option<&'static str> {
        let found = machine.states.iter().find(|state| state.seen.iter().any(|of| of == seen));
        found.map(|state| state.name.as_str()).or((seen == GONE).then_some(""))
    }

    #[test]
    fn each_step_is_claimed_and_joins_states() {
        for (machine, system) in MACHINES.iter().zip([LINUX, NETBSD]) {
            let claims = system.claims();
            let known =
                |name: &str| name.is_empty() || machine.states.iter().any(|s| s.name == name);
            for step in &machine.steps {
                assert!(known(&step.from) && known(&step.to), "{} to {}", step.from, step.to);
                assert!(!step.claims.is_empty(), "{}", step.event);
                for id in &step.claims {
                    let claim = claims.get(id).unwrap_or_else(|| panic!("{id}: no such claim"));
                    assert_eq!(claim.status(), Status::Checked, "{id}");
                }
            }
        }
    }

    #[test]
    fn each_step_is_one_of_the_model() {
        for (machine, leads) in all() {
            for Step { from, to, event, acts, .. } in &machine.steps {
                for act in acts {
                    let mut taken = leads.iter().filter(|lead| lead[1] == act);
                    let here = |seen| shown(machine, seen) == Some(from);
                    if from == to {
                        assert!(!taken.any(|lead| here(lead[0])), "{from}: {event}");
                    } else {
                        let there = |seen| shown(machine, seen) == Some(to);
                        let found = taken.any(|lead| here(lead[0]) && there(lead[2]));
                        assert!(found, "{from} to {to}: {event}");
                    }
                }
            }
        }
    }

    #[test]
    fn each_way_of_the_model_is_a_step() {
        for (machine, leads) in all() {
            for lead in leads {
                let [from, act, to] = lead;
                let (Some(from), Some(to)) = (shown(machine, from), shown(machine, to)) else {
                    continue;
                };
                let said = |step: &Step| {
                    step.from == from && step.to == to && step.acts.iter().any(|it| it == act)
                };
                assert!(from == to || machine.steps.iter().any(said), "no step for {lead:?}");
            }
        }
    }
}
