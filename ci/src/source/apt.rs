//! Looking for packages, through the machine's own apt.
//!
//! A suite is looked up in a private apt directory in the cache, with fresh
//! lists; nothing below `/etc` is touched, and what the machine's own lists say,
//! which may be as old as the machine, counts only where that fails. Mirrors are
//! taken from the machine's configuration, and apt checks signatures as ever.

use super::Package;
use crate::cache::Cache;
use crate::progress::Step;
use crate::run::{command, read};
use std::fs;
use std::path::Path;
use std::process::Command;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Looks in the lists that the machine has.
pub(super) fn own(pattern: &str) -> std::result::Result<Option<Package>, String> {
    candidates(&|| shared_command("apt-cache"), pattern, None)
}

/// Looks in a private directory that lists one suite.
pub(super) fn private(
    pattern: &str,
    suite: &str,
    cache: &Cache,
) -> std::result::Result<Package, String> {
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
            "apt on this machine knows of no Debian mirror that would have {suite}; if it has no \
             package lists at all, run apt-get update"
        ));
    }
    let mut why = String::new();
    for mirror in mirrors {
        let list = format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
        let file = directory.join("sources.list");
        fs::write(&file, list).map_err(|error| format!("{}: {error}", file.display()))?;
        let step = Step::begin(format!("look for {pattern} in {suite}"), None);
        let mut update = private_command("apt-get", &directory);
        // By itself apt calls it a success if it has fetched nothing.
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
        let apt = || private_command("apt-cache", &directory);
        match candidates(&apt, pattern, Some(suite))? {
            Some(package) => return Ok(package),
            None => why = format!("{suite} has no package {pattern}"),
        }
    }
    Err(why)
}

/// apt as the machine has it.
pub(super) fn shared_command(program: &str) -> Command {
    let mut command = command(program);
    // The cache may lie where apt's own user cannot look.
    command.args(["-o", "APT::Sandbox::User=root"]);
    command
}

/// apt with all its state in `directory`. The one thing that it shares with
/// the machine is what is configured for reaching mirrors, such as a proxy.
pub(super) fn private_command(program: &str, directory: &Path) -> Command {
    let mut command = shared_command(program);
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

/// The mirrors that would have a suite, from `apt-get indextargets`. The suites of security updates
/// are on mirrors of their own.
fn mirrors<'t>(targets: &'t str, suite: &str) -> Vec<&'t str> {
    let mut mirrors = Vec::new();
    for line in targets.lines() {
        let mut words = line.split_whitespace();
        let (Some(uri), Some(release), Some(origin)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        // Before the first `apt-get update` the origin is not known.
        let debian = origin == "Debian" || origin.starts_with("$(");
        let security = release.contains("security") || uri.contains("debian-security");
        if debian && security == suite.ends_with("-security") && !mirrors.contains(&uri) {
            mirrors.push(uri);
        }
    }
    mirrors
}

/// The newest of the packages that match the pattern.
fn candidates(
    apt: &dyn Fn() -> Command,
    pattern: &str,
    suite: Option<&str>,
) -> std::result::Result<Option<Package>, String> {
    let expression = format!("^{}(\\.[0-9]+)*$", pattern.replace('.', "\\."));
    let found = read(apt().args(["search", "--names-only", &expression]))?;
    let names: Vec<_> = found.lines().filter_map(|line| line.split(' ').next()).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let policy = read(apt().arg("policy").args(names))?;
    let mut newest: Option<Package> = None;
    for (name, version) in policies(&policy) {
        let newer = match &newest {
            None => true,
            Some(best) => {
                let mut dpkg = command("dpkg");
                dpkg.args(["--compare-versions", version, "gt", &best.version]);
                dpkg.status().map_err(|error| format!("dpkg: {error}"))?.success()
            }
        };
        if newer {
            let suite = suite.map(str::to_string);
            newest = Some(Package { name: name.into(), version: version.into(), suite });
        }
    }
    Ok(newest)
}

/// Names and candidate versions, from `apt-cache policy`.
fn policies(text: &str) -> Vec<(&str, &str)> {
    let mut name = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(package) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            name = package;
        } else if let Some(version) = line.trim().strip_prefix("Candidate: ") {
            if version != "(none)" {
                found.push((name, version));
            }
        }
    }
    found
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
        assert!(mirrors("", "sid").is_empty());
    }

    #[test]
    fn policies_name_candidates() {
        let text = "\
linux-source-7.2:
  Installed: (none)
  Candidate: 7.2.1-1~bpo13+1
  Version table:
     7.2.1-1~bpo13+1 500
linux-source-7.3:
  Installed: (none)
  Candidate: (none)
  Version table:
";
        assert_eq!(policies(text), [("linux-source-7.2", "7.2.1-1~bpo13+1")]);
    }
}
