//! `mutants`: which ones are run, and what is reported.

use super::campaign::Campaign;
use super::mutant::{self, Mutant};
use super::page;
use super::record::{Entry, Outcome, Record};
use super::subject::Subject;
use crate::cli::MutantsOptions;
use crate::commands::print;
use crate::error::{
    Error, OrUnavailable as _, Phase, Result, STATUS_FAILED, STATUS_PASSED, STATUS_UNAVAILABLE,
};
use crate::hash;
use crate::kernel::Bench;
use crate::session::Session;
use crate::target::{Kind, Target};
use crate::tester::suite_arguments;
use std::collections::HashMap;
use std::fs;

/// Runs the mutants of the target's driver and reports.
pub fn run(session: &Session, target: &Target, options: &MutantsOptions) -> Result<u8> {
    if target.mutants.is_empty() || target.kind == Kind::Netbsd {
        return Err(Error::usage(format!("targets.toml names no mutants for {}", target.name)));
    }
    let subject = Subject::load(&session.targets.base, &target.mutants, &target.name)?;
    let source = session.source(target)?;
    let (cache, jobs) = (&session.cache, session.choices.jobs);
    let bench = Bench::open(target, &source, &session.targets.base, cache, jobs, &subject.file)?;
    let wrong = |why| Error::unavailable(Phase::Targets, format!("{}: {why}", target.mutants));
    let all = mutant::all(bench.original(), &bench.config()?, &subject).map_err(wrong)?;
    let known = |id: &String| all.iter().any(|mutant| mutant.id == *id);
    let mut listed = subject.equivalent.iter().flat_map(|entry| &entry.ids);
    if let Some(id) = listed.find(|id| !known(id)) {
        return Err(wrong(format!("`{id}` is called equivalent, and there is no such mutant")));
    }
    let chosen = chosen(&all, options);
    if options.list {
        chosen.iter().for_each(|mutant| print(&format!("{:5} {}\n", mutant.line, mutant.id)));
        print(&format!("{} of {} mutants\n", chosen.len(), all.len()));
        return Ok(STATUS_PASSED);
    }
    let mut record = Record {
        target: target.name.clone(),
        source: source.describe(),
        file: subject.file.clone(),
        all: all.len(),
        mutants: Vec::new(),
    };
    if let Some(file) = &options.again {
        let earlier = Record::read(file)?;
        let outcomes = earlier.mutants.into_iter().map(|entry| (entry.id, entry.outcome));
        let outcomes: HashMap<_, _> = outcomes.collect();
        let settled = |outcome: &Outcome| options.no_run || *outcome != Outcome::Survived;
        let keep = |mutant: &&&Mutant| outcomes.get(&mutant.id).is_some_and(settled);
        record.mutants =
            chosen.iter().filter(keep).map(|m| Entry::new(m, outcomes[&m.id].clone())).collect();
    }
    let done: Vec<String> = record.mutants.iter().map(|entry| entry.id.clone()).collect();
    let left: Vec<&Mutant> = chosen.iter().copied().filter(|m| !done.contains(&m.id)).collect();
    let suite = session.programs.suite_for(&target.userland)?;
    let mut arguments = suite_arguments(target, &[], target.calls.is_some());
    arguments.push("--fail-fast".into());
    let suite = session.task(target, &suite, arguments);
    let suite = suite.map_err(|why| Error::unavailable(Phase::Image, why))?;
    let campaign = Campaign::new(session, target, options, suite, &chosen, record);
    if !options.no_run && !left.is_empty() {
        campaign.all(&bench, &left)?;
    }
    let record = campaign.into_record();
    print(&page::text(&record, &subject));
    if let Some(file) = &options.page {
        let page = page::render(&record, &subject);
        fs::write(file, page).or_unavailable(Phase::Verdict, file.display())?;
    }
    let missed = page::Counts::of(record.mutants.iter(), &subject);
    Ok(match record.mutants.len() {
        _ if missed.survived + missed.stale > 0 => STATUS_FAILED,
        tried if tried < chosen.len() => STATUS_UNAVAILABLE,
        _ => STATUS_PASSED,
    })
}

/// What is asked for. A sample is the same for the same seed.
fn chosen<'a>(all: &'a [Mutant], options: &MutantsOptions) -> Vec<&'a Mutant> {
    let wanted = |m: &&Mutant| options.only.as_ref().is_none_or(|words| m.id.contains(words));
    let mut found: Vec<&Mutant> = all.iter().filter(wanted).collect();
    if let Some(count) = options.sample {
        let rank =
            |mutant: &Mutant| hash::bytes(format!("{} {}", options.seed, mutant.id).as_bytes());
        found.sort_by_cached_key(|mutant| rank(mutant));
        found.truncate(count);
        found.sort_by_key(|mutant| mutant.edit.place.start);
    }
    found
}
