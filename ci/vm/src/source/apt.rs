//! Finds packages with the machine's apt.
//!
//! It searches a suite in a private apt directory in the cache, with fresh lists, and changes
//! nothing in `/etc`. The machine's own lists may be old. Mirrors come from the machine's
//! configuration, and apt checks signatures as usual.

use super::Package;
use crate::cache::Cache;
use crate::progress::Step;
use crate::run::{command, read};
use crate::target::{Pin, Wanted};
use std::fs;
use std::path::Path;
use std::process::Command;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Searches a suite for a package.
pub(super) fn search(wanted: &Wanted, cache: &Cache) -> std::result::Result<Package, String> {
    let Wanted { pattern, suite, .. } = wanted;
    let directory = cache.apt(suite);
    let prepare = || {
        fs::create_dir_all(directory.join("lists/partial"))?;
        fs::create_dir_all(directory.join("archives/partial"))
    };
    prepare().map_err(|error| format!("{}: {error}", directory.display()))?;
    if !Path::new(KEYRING).is_file() {
        return Err(format!("{KEYRING} is missing: apt-get install debian-archive-keyring"));
    }
    let targets = read(command("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI) $(RELEASE) $(ORIGIN) $(COMPONENT)",
    ]))?;
    let mirrors = mirrors(&targets, suite);
    if mirrors.is_empty() {
        return Err(format!(
            "apt on this machine knows no Debian mirror for {suite}; if it has no \
             package lists, run apt-get update"
        ));
    }
    let mut why = String::new();
    for mirror in mirrors {
        let list = format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
        let file = directory.join("sources.list");
        fs::write(&file, list).map_err(|error| format!("{}: {error}", file.display()))?;
        let step = Step::begin(format!("look for {pattern} in {suite}"));
        let mut update = apt("apt-get", &directory);
        // By default apt reports success even if it fetched nothing.
        match read(update.args(["-o", "APT::Update::Error-Mode=any", "update"])) {
            Ok(_) => step.done(),
            Err(error) => {
                why = format!(
                    "the package lists of {suite} cannot be fetched: {error}; without a network, \
                     give a kernel's source with --source"
                );
                continue;
            }
        }
        match chosen(wanted, &directory)? {
            Some(package) => return Ok(package),
            None => why = format!("{suite} has no package {pattern}"),
        }
    }
    Err(why)
}

/// Makes a command of apt with all its state in `directory`. From the machine it takes only
/// settings for reaching mirrors, such as a proxy.
pub(super) fn apt(program: &str, directory: &Path) -> Command {
    let mut command = command(program);
    // apt's own user may lack access to the cache.
    command.args(["-o", "APT::Sandbox::User=root"]);
    for (option, value) in [
        ("Dir::Etc::sourcelist", "sources.list"),
        ("Dir::State::lists", "lists"),
        ("Dir::Cache", ""),
        ("Dir::Cache::archives", "archives"),
    ] {
        command.arg("-o").arg(format!("{option}={}", directory.join(value).display()));
    }
    command.args(["-o", "Dir::Etc::sourceparts=/dev/null"]);
    command.args(["-o", "Dir::Etc::preferencesparts=/dev/null"]);
    command
}

/// Selects the mirrors for a suite from `apt-get indextargets`. Security suites have mirrors of
/// their own. If none is configured, guesses its address: `debian-security` beside `debian`.
fn mirrors(targets: &str, suite: &str) -> Vec<String> {
    let mut usual = Vec::new();
    let mut security = Vec::new();
    for line in targets.lines() {
        let mut words = line.split_whitespace();
        let (Some(uri), Some(release), Some(origin)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        // The origin is unknown before the first `apt-get update`.
        let debian = origin == "Debian" || origin.starts_with("$(");
        let is_security = release.contains("security") || uri.contains("debian-security");
        let mirrors = if is_security { &mut security } else { &mut usual };
        if debian && !mirrors.iter().any(|mirror| mirror == uri) {
            mirrors.push(uri.to_string());
        }
    }
    if !suite.ends_with("-security") {
        usual
    } else if security.is_empty() {
        usual.iter().map(|mirror| format!("{}-security/", mirror.trim_end_matches('/'))).collect()
    } else {
        security
    }
}

/// Returns the locked version if it is available, else the newest package that matches the pattern.
fn chosen(wanted: &Wanted, directory: &Path) -> std::result::Result<Option<Package>, String> {
    let cache = || apt("apt-cache", directory);
    let expression = format!("^{}(\\.[0-9]+)*$", wanted.pattern.replace('.', "\\."));
    let names = read(cache().args(["search", "--names-only", &expression]))?;
    let names: Vec<_> = names.lines().filter_map(|line| line.split(' ').next()).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let listed = read(cache().arg("madison").args(names))?;
    let found = versions(&listed);
    let package = |name: &str, version: &str, instead_of| {
        let (name, version) = (name.to_string(), version.to_string());
        Package { name, version, suite: wanted.suite.clone(), instead_of }
    };
    let pin = wanted.pin.as_ref();
    if let Some(pin) = pin.filter(|pin| found.contains(&(&*pin.name, &*pin.version))) {
        return Ok(Some(package(&pin.name, &pin.version, None)));
    }
    let mut newest: Option<(&str, &str)> = None;
    for (name, version) in found {
        let is_newer = match newest {
            None => true,
            Some((_, best)) => {
                let mut dpkg = command("dpkg");
                dpkg.args(["--compare-versions", version, "gt", best]);
                dpkg.status().map_err(|error| format!("dpkg: {error}"))?.success()
            }
        };
        if is_newer {
            newest = Some((name, version));
        }
    }
    Ok(newest.map(|(name, version)| package(name, version, pin.map(Pin::text))))
}

/// Parses the output of `apt-cache madison`: on each line a name, a version and an origin.
fn versions(text: &str) -> Vec<(&str, &str)> {
    let line = |line| {
        let mut fields = str::split(line, '|').map(str::trim);
        fields.next().zip(fields.next())
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_the_machines_own() {
        let text = "\
            http://mirror.example/debian-security/ bookworm-security Debian main\n\
            http://mirror.example/debian/ bookworm Debian main\n\
            http://mirror.example/debian/ bookworm Debian main\n\
            https://other.example/ stable Other main\n\
            http://fresh.example/debian/ bookworm $(ORIGIN) main\n";
        let expected = ["http://mirror.example/debian/", "http://fresh.example/debian/"];
        assert_eq!(mirrors(text, "trixie-backports"), expected);
        assert_eq!(mirrors(text, "bookworm-security"), ["http://mirror.example/debian-security/"]);
        let minimal = "http://mirror.example/debian/ trixie Debian main\n";
        assert_eq!(mirrors(minimal, "trixie-security"), ["http://mirror.example/debian-security/"]);
        assert!(mirrors("", "sid").is_empty());
    }

    #[test]
    fn versions_are_between_bars() {
        let text = "linux-source-7.2 | 7.2.1-1~bpo13+1 | http://mirror.example/debian sid/main amd64\n\
                    linux-source-7.2 |    7.2.0-1 | http://mirror.example/debian sid/main amd64\n";
        let expected = [("linux-source-7.2", "7.2.1-1~bpo13+1"), ("linux-source-7.2", "7.2.0-1")];
        assert_eq!(versions(text), expected);
    }
}
