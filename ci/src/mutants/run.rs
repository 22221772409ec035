//! `mutants`: selects the alterations, tries them and reports.

use super::bench::Bench;
use super::campaign::{Campaign, Lot};
use super::known::Known;
use super::library::Library;
use super::mutant::{self, Mutant};
use super::named::{Named, Where};
use super::page;
use super::record::{Outcome, Record};
use super::subject::Subject;
use crate::cli::MutantsOptions;
use crate::suite::{self, data};
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result, STATUS_FAILED, STATUS_PASSED};
use kcov_vm::hash;
use kcov_vm::kernel;
use kcov_vm::netbsd;
use kcov_vm::output::print;
use kcov_vm::session::Session;
use kcov_vm::target::{Kind, Target};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Tries the alterations and reports.
pub fn run(
    session: &Session,
    target: &Target,
    tree: Option<&Path>,
    options: &MutantsOptions,
) -> Result<u8> {
    if target.mutants.is_empty() {
        return Err(Error::usage(format!(
            "{}: targets.toml has no key `mutants` for this target",
            target.name
        )));
    }
    let data = options.data.clone().unwrap_or_else(|| data().join("mutants"));
    let known = Known::load(&data, &target.mutants)?;
    let suite = suite::digest(target.kind.system())?;
    let record = match &options.report {
        Some(file) if options.no_run => Record::read(file)?,
        _ => match attempt(Means { session, target, tree, options, known: &known }, &suite)? {
            Some(record) => record,
            None => return Ok(STATUS_PASSED),
        },
    };
    print(&page::text(&record, &known, &suite));
    if let Some(file) = &options.page {
        let page = page::render(&record, &known, &suite);
        fs::write(file, page).or_unavailable(Phase::Verdict, file.display())?;
    }
    let is_old = record.suite != suite;
    let is_right = is_old || page::contradictions(&record, &known).is_empty();
    Ok(if is_right { STATUS_PASSED } else { STATUS_FAILED })
}

/// The inputs of a campaign.
#[derive(Clone, Copy)]
struct Means<'a> {
    session: &'a Session,
    target: &'a Target,
    /// The tree of NetBSD's sources.
    tree: Option<&'a Path>,
    options: &'a MutantsOptions,
    known: &'a Known,
}

/// Runs a campaign, or returns `None` if only names are requested.
fn attempt(means: Means<'_>, suite: &str) -> Result<Option<Record>> {
    let Means { session, target, options, known, .. } = means;
    let named = || known.kernel.values().chain(known.library.values()).flatten();
    if options.named {
        means.matched(named().map(|named| named.name.as_str()))?;
    }
    let mut record = Record {
        target: target.name.clone(),
        source: source(means, &known.subject.file)?,
        file: known.subject.file.clone(),
        suite: suite.to_string(),
        whole: options.whole,
        operations: known.subject.lockstep.operations,
        ..Record::default()
    };
    if let Some(file) = options.report.as_ref().filter(|file| file.exists()) {
        if !Record::read(file).is_ok_and(|earlier| record.resume(earlier)) {
            eprintln!(
                "{}: belongs to another suite or kernel, or another --whole or number of \
                 operations; starting a new report",
                file.display()
            );
        }
    }
    if options.again {
        record.forget_undetected(|id| means.wants(id) && !known.subject.is_equivalent(id));
    }
    record.named.retain(|entry| named().any(|n| n.name == entry.id && n.digest() == entry.digest));
    let mut campaign = Campaign::new(session, options, &known.subject.lockstep, record)?;
    campaign.order = named().map(|named| named.name.clone()).collect();
    if !options.named && !mutants(means, &mut campaign)? {
        return Ok(None);
    }
    if options.list {
        let names = named().map(|named| &named.name).filter(|name| means.wants(name));
        names.for_each(|name| print(&format!("named {name}\n")));
        return Ok(None);
    }
    if options.sample.is_none() {
        // The kernel first: the trees that are built for it leave kernels for the library.
        kernel(means, &campaign)?;
        library(means, &campaign)?;
    }
    let record = campaign.record().clone();
    if let Some(file) = &options.report {
        fs::write(file, record.to_json()).or_unavailable(Phase::Verdict, file.display())?;
    }
    Ok(Some(record))
}

/// Tries the mutants. Returns whether there is more to do.
fn mutants<'a>(means: Means<'a>, campaign: &mut Campaign<'a>) -> Result<bool> {
    let Means { session, target, options, known, .. } = means;
    let subject = &known.subject;
    let (all, bench) = match target.kind {
        // A list needs no kernel.
        Kind::Netbsd => (all(&netbsd_text(means, &subject.file)?, "", subject)?, None),
        Kind::Uml | Kind::Qemu => {
            let bench = linux(session, target, &subject.file)?;
            (all(bench.original(), &bench.config()?, subject)?, Some(Bench::Linux(bench)))
        }
    };
    if let Some(id) = subject.remarked().find(|id| all.iter().all(|mutant| mutant.id != **id)) {
        let why = format!("{}: it has a remark on `{id}`, which is not a mutant", target.mutants);
        return Err(Error::unavailable(Phase::Targets, why));
    }
    let chosen = chosen(&all, means);
    // A sample contains only mutants.
    let named = known.kernel.values().chain(known.library.values()).flatten();
    let named = named.filter(|_| options.sample.is_none()).map(|named| named.name.as_str());
    means.matched(all.iter().map(|mutant| mutant.id.as_str()).chain(named))?;
    if options.list {
        chosen.iter().for_each(|mutant| print(&format!("{:5} {}\n", mutant.line, mutant.id)));
        print(&format!("{} of {} mutants\n", chosen.len(), all.len()));
        return Ok(true);
    }
    campaign.order.splice(0..0, all.iter().map(|mutant| mutant.id.clone()));
    {
        let mut record = campaign.record();
        record.all = all.len();
        record.mutants.retain(|entry| all.iter().any(|mutant| mutant.id == entry.id));
    }
    let left: Vec<&Mutant> = chosen.iter().copied().filter(|m| campaign.lacks(&m.id)).collect();
    if !left.is_empty() {
        let bench = bench.map_or_else(|| open(means, target, &subject.file), Ok)?;
        let mut lot = campaign.lot(target, Vec::new());
        campaign.kernels(&mut lot, &bench, &[], &left)?;
        campaign.finish(lot)?;
        // The end of the block releases the tree: another target may use the same one.
    }
    for elsewhere in &subject.elsewhere {
        let other = session.targets.named(&elsewhere.target)?;
        let is_open = |id: &str| {
            let record = campaign.record();
            let entry = record.find(id).filter(|entry| entry.on == target.name);
            elsewhere.words.iter().any(|words| id.contains(words.as_str()))
                && entry.is_some_and(|entry| entry.outcome == Outcome::Undetected)
        };
        if !chosen.iter().any(|mutant| is_open(&mutant.id)) {
            continue;
        }
        let bench = linux(session, other, &subject.file)?;
        let all = self::all(bench.original(), &bench.config()?, subject)?;
        let bench = Bench::Linux(bench);
        let left: Vec<&Mutant> = all.iter().filter(|mutant| is_open(&mutant.id)).collect();
        let mut lot = campaign.lot(other, elsewhere.checks.clone());
        campaign.kernels(&mut lot, &bench, &elsewhere.checks, &left)?;
        campaign.finish(lot)?;
    }
    Ok(true)
}

/// Tries the named alterations of the kernel.
fn kernel<'a>(means: Means<'a>, campaign: &Campaign<'a>) -> Result<()> {
    each_lot(means, campaign, &means.known.kernel, |lot, on, place, named| {
        let mut files: BTreeMap<&str, Vec<&Named>> = BTreeMap::new();
        for named in named {
            files.entry(&named.file).or_default().push(named);
        }
        for (file, named) in files {
            let bench = open(means, on, file)?;
            let mutants: Vec<Mutant> =
                named.iter().map(|n| n.mutant(bench.original())).collect::<Result<_>>()?;
            let mutants: Vec<&Mutant> = mutants.iter().collect();
            campaign.kernels(lot, &bench, &place.checks, &mutants)?;
        }
        Ok(())
    })
}

/// Tries the named alterations of the library.
fn library<'a>(means: Means<'a>, campaign: &Campaign<'a>) -> Result<()> {
    each_lot(means, campaign, &means.known.library, |lot, _, place, named| {
        let mutants: Vec<Mutant> = named
            .iter()
            .map(|named| named.mutant(&Library::original(&named.file)?))
            .collect::<Result<_>>()?;
        campaign.library(lot, &place.checks, &mutants)
    })
}

/// Tries the alterations that are left, one target after the other.
fn each_lot<'a, 's>(
    means: Means<'a>,
    campaign: &'s Campaign<'a>,
    all: &'a BTreeMap<Where, Vec<Named>>,
    mut attempt: impl FnMut(&mut Lot<'s>, &'a Target, &Where, &[&Named]) -> Result<()>,
) -> Result<()> {
    let is_left = |named: &&Named| means.wants(&named.name) && campaign.lacks(&named.name);
    let left: Vec<(&Where, Vec<&Named>)> = all
        .iter()
        .map(|(place, named)| (place, named.iter().filter(is_left).collect::<Vec<_>>()))
        .filter(|(_, named)| !named.is_empty())
        .collect();
    // They are sorted by target.
    for places in left.chunk_by(|(one, _), (next, _)| one.on == next.on) {
        let on = means.target(places[0].0)?;
        let is_all = places.iter().any(|(place, _)| place.checks.is_empty());
        let checks = places.iter().filter(|_| !is_all).flat_map(|(place, _)| &place.checks);
        let mut lot = campaign.lot(on, checks.cloned().collect());
        for (place, named) in places {
            attempt(&mut lot, on, place, named)?;
        }
        campaign.finish(lot)?;
    }
    Ok(())
}

impl<'a> Means<'a> {
    fn wants(&self, id: &str) -> bool {
        let only = &self.options.only;
        only.is_empty() || only.iter().any(|words| id.contains(words.as_str()))
    }

    fn matched<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<()> {
        matched(&self.options.only, names)
    }

    fn target(&self, place: &Where) -> Result<&'a Target> {
        let Self { session, target, .. } = *self;
        place.on.as_ref().map_or(Ok(target), |name| session.targets.named(name))
    }
}

/// Fails if one of the words matches no name, because an empty campaign would pass.
pub(super) fn matched<'n>(only: &[String], names: impl Iterator<Item = &'n str>) -> Result<()> {
    let names: Vec<&str> = names.collect();
    match only.iter().find(|words| !names.iter().any(|name| name.contains(words.as_str()))) {
        Some(words) => {
            Err(Error::usage(format!("--only: no alteration has `{words}` in its name")))
        }
        None => Ok(()),
    }
}

fn open(means: Means<'_>, target: &Target, file: &str) -> Result<Bench> {
    let Means { session, options, .. } = means;
    if target.kind != Kind::Netbsd {
        return linux(session, target, file).map(Bench::Linux);
    }
    netbsd::given(true, session.programs.netbsd.is_some())?;
    let tree = netbsd_tree(means)?.to_path_buf();
    let command = options.command.clone().filter(|command| command.contains("{kernel}"));
    let command = command.ok_or_else(|| {
        let why = "--build: needs a command that leaves a kernel at {kernel}; see `--help`";
        Error::usage(why)
    })?;
    let recipe = netbsd::BenchRecipe { tree, command };
    netbsd::Bench::open(&recipe, file, &session.cache).map(Bench::Netbsd)
}

fn linux(session: &Session, target: &Target, file: &str) -> Result<kernel::Bench> {
    let source = session.source(target)?;
    let (cache, jobs) = (&session.cache, session.choices.jobs);
    kernel::Bench::open(target, &source, &session.targets.base, cache, jobs, file)
}

fn netbsd_tree(means: Means<'_>) -> Result<&Path> {
    means
        .tree
        .ok_or_else(|| Error::usage("--source: needs the tree of NetBSD's sources; see `--help`"))
}

fn netbsd_text(means: Means<'_>, file: &str) -> Result<String> {
    let path = netbsd_tree(means)?.join(file);
    fs::read_to_string(&path).or_unavailable(Phase::Source, path.display())
}

/// Describes the target's source. NetBSD's file is known by its revision and its digest, and the
/// kernel by the declared words.
fn source(means: Means<'_>, file: &str) -> Result<String> {
    let Means { session, target, .. } = means;
    if target.kind != Kind::Netbsd {
        return Ok(session.source(target)?.describe());
    }
    let text = netbsd_text(means, file)?;
    let digest = &hash::bytes(text.as_bytes())[..12];
    Ok(format!("{} (digest {digest}; {})", revision(&text), target.declares.join(", ")))
}

/// Returns the revision that NetBSD's repository has written into a file.
pub(super) fn revision(text: &str) -> String {
    let words = text.split_once(",v ").map(|(_, rest)| rest.split_whitespace().take(2));
    let words: Vec<_> = words.into_iter().flatten().collect();
    match words.as_slice() {
        [number, date] => format!("NetBSD, revision {number} of {}", date.replace('/', "-")),
        _ => "NetBSD".into(),
    }
}

fn all(text: &str, config: &str, subject: &Subject) -> Result<Vec<Mutant>> {
    let all = mutant::all(text, config, subject);
    all.map_err(|why| Error::unavailable(Phase::Targets, format!("{}: {why}", subject.file)))
}

/// Returns the requested mutants. The same seed gives the same sample.
fn chosen<'m>(all: &'m [Mutant], means: Means<'_>) -> Vec<&'m Mutant> {
    let mut found: Vec<&Mutant> = all.iter().filter(|mutant| means.wants(&mutant.id)).collect();
    if let Some(count) = means.options.sample {
        let seed = means.options.seed;
        found.sort_by_cached_key(|mutant| hash::bytes(format!("{seed} {}", mutant.id).as_bytes()));
        found.truncate(count);
        found.sort_by_key(|mutant| mutant.edit.place.start);
    }
    found
}
