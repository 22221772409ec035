//! The states of a device and the steps between them, as tables and pictures. Each step names its
//! claims, and a test compares the steps with the model of the driver.

mod common;
mod linux;
mod netbsd;

pub(super) use linux::LINUX;
pub(super) use netbsd::NETBSD;

use super::reference::{self, Page, link};
use super::registry::{self, System};
use super::svg::{Anchor, Svg};
use super::{MARK, WRITING, plain};
use std::fmt::Write as _;

/// A state.
#[derive(Clone, Copy)]
pub(super) struct State {
    name: &'static str,
    meaning: &'static str,
    class: &'static str,
}

/// A state of one system's device.
pub(super) struct Placed {
    state: State,
    /// The model's states that it combines.
    seen: &'static [&'static str],
    /// Its position in the picture.
    at: (i32, i32),
}

/// A step between states. An empty name means before open or after the device is gone.
#[derive(Clone, Copy)]
pub(super) struct Step {
    from: &'static str,
    to: &'static str,
    /// A description, with placeholders from [`Machine::requests`].
    event: &'static str,
    /// The acts in the model. Empty if the model's table does not contain them.
    acts: &'static [&'static str],
    claims: &'static [&'static str],
}

/// An arrow in the picture, with its label.
pub(super) struct Arrow {
    points: &'static [(i32, i32)],
    at: (i32, i32),
    anchor: Anchor,
    label: &'static [&'static str],
}

/// The state machine of one driver.
pub(super) struct Machine {
    title: &'static str,
    system: System,
    requests: [(&'static str, &'static str); 3],
    height: i32,
    states: &'static [Placed],
    /// In addition to the common ones.
    steps: &'static [Step],
    arrows: &'static [Arrow],
}

const BOX: (i32, i32) = (120, 44);

impl Machine {
    fn all_steps(&self) -> impl Iterator<Item = &Step> {
        common::STEPS.iter().chain(self.steps)
    }

    fn event(&self, step: &Step) -> String {
        let names = self.requests.iter();
        names.fold(step.event.to_owned(), |text, (word, request)| text.replace(word, request))
    }
}

pub(super) fn picture(machine: &Machine) -> String {
    let mut svg = Svg::new(390, machine.height, machine.title);
    for Placed { state: State { name, class, .. }, at: (x, y), .. } in machine.states {
        svg.state(class, *x, *y, BOX.0, BOX.1);
        svg.text(x + BOX.0 / 2, y + BOX.1 / 2 + 5, Anchor::Middle, name);
    }
    for Arrow { points, at: (x, y), anchor, label } in machine.arrows {
        svg.arrow(points);
        for (line, text) in (0..).zip(*label) {
            svg.note(*x, y + 16 * line, *anchor, text);
        }
    }
    svg.finish()
}

pub(super) fn table(machine: &Machine) -> String {
    let outcomes = format!("generated/outcomes-{}.md", machine.system.word);
    let mut page =
        format!("{MARK}| State | Meaning | [In the full table]({outcomes}) |\n|---|---|---|\n");
    for Placed { state: State { name, meaning, .. }, seen, .. } in machine.states {
        writeln!(page, "| {name} | {} | {} |", plain(meaning), seen.join("<br>")).expect(WRITING);
    }
    page
}

/// The steps that a page's requests make. A step belongs to the page of its first claim.
pub(super) fn section(page: &Page) -> String {
    let mut rows = String::new();
    for machine in [&LINUX, &NETBSD] {
        let (name, word) = (machine.system.name, machine.system.word);
        let here = |step: &&Step| std::ptr::eq(reference::page_of(step.claims[0]), page);
        for step in machine.all_steps().filter(here) {
            let (from, to) = (self::name(step.from), self::name(step.to));
            let claims: Vec<_> = step.claims.iter().map(|id| link(id)).collect();
            let acts: Vec<_> =
                step.acts.iter().map(|act| format!("[{act}](outcomes-{word}.md)")).collect();
            let (event, acts) = (machine.event(step), acts.join("<br>"));
            let claims = claims.join("<br>");
            writeln!(rows, "| {name} | {from} | {event} | {to} | {acts} | {claims} |")
                .expect(WRITING);
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "## States\n\n| System | From | Event | To | In the full table | Claims |\n|---|---|---|---|---|---|\n{rows}\n"
    )
}

/// A device has no state before open and after it is gone.
fn name(state: &str) -> &str {
    if state.is_empty() { "–" } else { state }
}

#[cfg(test)]
mod tests {
    use super::{LINUX, Machine, NETBSD, Step};
    use kcov_conformance::model::states::{GONE, Lead, linux_leads, netbsd_leads};

    /// Each machine with the steps of the driver's model.
    fn all() -> [(Machine, Vec<Lead>); 2] {
        [(LINUX, linux_leads()), (NETBSD, netbsd_leads())]
    }

    /// The state in the picture for a state of the model. None if another thread's state matters.
    fn shown(machine: &Machine, seen: &str) -> Option<&'static str> {
        let found = machine.states.iter().find(|placed| placed.seen.contains(&seen));
        found.map(|placed| placed.state.name).or((seen == GONE).then_some(""))
    }

    #[test]
    fn each_step_is_claimed_and_joins_states() {
        for (machine, _) in all() {
            let claims = machine.system.entries();
            let known =
                |name: &str| name.is_empty() || machine.states.iter().any(|s| s.state.name == name);
            for step in machine.all_steps() {
                assert!(known(step.from) && known(step.to), "{} to {}", step.from, step.to);
                assert!(!step.claims.is_empty(), "{}", step.event);
                for id in step.claims {
                    let claim = claims.iter().find(|claim| claim.id == *id);
                    let claim = claim.unwrap_or_else(|| panic!("{id}: no such claim"));
                    assert_eq!(claim.status, "checked", "{id}");
                }
            }
        }
    }

    #[test]
    fn each_step_is_one_of_the_model() {
        for (machine, leads) in all() {
            for Step { from, to, event, acts, .. } in machine.all_steps() {
                for act in *acts {
                    let mut taken = leads.iter().filter(|lead| lead.act == *act);
                    let here = |seen| shown(&machine, seen) == Some(from);
                    if from == to {
                        assert!(!taken.any(|lead| here(lead.from)), "{from}: {event}");
                    } else {
                        let there = |seen| shown(&machine, seen) == Some(to);
                        let found = taken.any(|lead| here(lead.from) && there(lead.to));
                        assert!(found, "{}: {from} to {to}: {event}", machine.title);
                    }
                }
            }
        }
    }

    #[test]
    fn each_way_of_the_model_is_a_step() {
        for (machine, leads) in all() {
            for lead in leads {
                let (Some(from), Some(to)) = (shown(&machine, lead.from), shown(&machine, lead.to))
                else {
                    continue;
                };
                let said = |step: &Step| {
                    step.from == from && step.to == to && step.acts.contains(&lead.act)
                };
                assert!(from == to || machine.all_steps().any(said), "no step for {lead:?}");
            }
        }
    }
}
