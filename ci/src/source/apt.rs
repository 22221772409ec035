//! Source packages, through the machine's own apt.
//!
//! A suite is looked up in a private apt directory in the cache, with fresh
//! lists; nothing below `/etc` is touched, and what the machine's own lists say,
//! which may be as old as the machine, counts only where that fails. Mirrors are
//! taken from the machine's configuration, and apt checks signatures as ever.

use crate::cache::Cache;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::progress::Step;
use crate::run::{command, read};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A package that apt can download.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The suite, if it comes out of a private directory.
    suite: Option<String>,
}

/// For how long the newest version counts as the newest.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Package {
    /// The newest package whose name is `pattern` or `pattern.*`.
    pub fn newest(pattern: &str, suite: &str, cache: &Cache, refresh: bool) -> Result<Self> {
        let memory = cache.sources().join(format!("{pattern}@{suite}.json"));
        let known = Self::remembered(&memory);
        if let (Some((package, age)), false) = (&known, refresh) {
            if *age < DAY {
                return Ok(package.clone());
            }
        }
        let _lock = cache.lock(Phase::Source, &format!("apt-{suite}"))?;
        let found =
            private(pattern, suite, cache).or_else(|why| own(pattern).ok().flatten().ok_or(why));
        match (found, known) {
            (Ok(package), _) => {
                let text = serde_json::to_string(&package).unwrap_or_default();
                fs::write(&memory, text).or_unavailable(Phase::Source, memory.display())?;
                Ok(package)
            }
            (Err(why), Some((package, _))) => {
                eprintln!("using {} {} as before: {why}", package.name, package.version);
                Ok(package)
            }
            (Err(why), None) => Err(Error::unavailable(Phase::Source, why)),
        }
    }

    /// What `newest` found when it was last asked, without asking anybody.
    pub fn last_known(pattern: &str, suite: &str, cache: &Cache) -> Option<Self> {
        let memory = cache.sources().join(format!("{pattern}@{suite}.json"));
        Self::remembered(&memory).map(|(package, _)| package)
    }

    fn remembered(memory: &Path) -> Option<(Self, Duration)> {
        let time = fs::metadata(memory).ok()?.modified().ok()?;
        let package = serde_json::from_str(&fs::read_to_string(memory).ok()?).ok()?;
        Some((package, SystemTime::now().duration_since(time).unwrap_or_default()))
    }

    /// Downloads the package into a directory.
    pub fn download(&self, cache: &Cache, directory: &Path) -> Result<PathBuf> {
        let mut apt = match &self.suite {
            Some(suite) => private_command("apt-get", &cache.apt(suite)),
            None => command("apt-get"),
        };
        apt.args(["-o", "APT::Sandbox::User=root", "download"]);
        apt.arg(format!("{}={}", self.name, self.version)).current_dir(directory);
        let step = Step::begin(format!("download {} {}", self.name, self.version), None);
        read(&mut apt).map_err(|why| Error::unavailable(Phase::Source, why))?;
        step.done();
        let file = packages_in(directory)?.pop();
        file.ok_or_else(|| Error::unavailable(Phase::Source, "apt-get download left no package"))
    }

    /// Downloads the package, and all that it needs on a machine that has
    /// nothing, into a directory.
    pub fn download_with_needs(&self, cache: &Cache, directory: &Path) -> Result<Vec<PathBuf>> {
        let (archives, status) = (directory.join("archives"), directory.join("status"));
        let prepare = fs::create_dir_all(archives.join("partial"));
        prepare.and_then(|()| fs::write(&status, "")).or_unavailable(Phase::Source, "apt-get")?;
        let mut apt = match &self.suite {
            Some(suite) => private_command("apt-get", &cache.apt(suite)),
            None => command("apt-get"),
        };
        for (option, value) in
            [("Dir::State::status", &status), ("Dir::Cache::archives", &archives)]
        {
            apt.arg("-o").arg(format!("{option}={}", value.display()));
        }
        apt.args(["-o", "APT::Sandbox::User=root", "--yes", "--download-only"]);
        apt.args(["--no-install-recommends", "install"]);
        apt.arg(format!("{}={}", self.name, self.version));
        let step = Step::begin(format!("download {} {}", self.name, self.version), None);
        read(&mut apt).map_err(|why| Error::unavailable(Phase::Source, why))?;
        step.done();
        packages_in(&archives)
    }
}

/// The packages in a directory.
fn packages_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(directory).or_unavailable(Phase::Source, directory.display())?;
    let paths = files.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|name| name == "deb")).collect())
}

/// Looks in the lists that the machine has.
fn own(pattern: &str) -> std::result::Result<Option<Package>, String> {
    candidates(&|| command("apt-cache"), pattern, None)
}

/// Looks in a private directory that lists one suite.
fn private(pattern: &str, suite: &str, cache: &Cache) -> std::result::Result<Package, String> {
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
        return Err(format!("apt on this machine lists no Debian mirror that would have {suite}"));
    }
    let mut why = String::new();
    for mirror in mirrors {
        let list = format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
        let file = directory.join("sources.list");
        fs::write(&file, list).map_err(|error| format!("{}: {error}", file.display()))?;
        let step = Step::begin(format!("look for {pattern} in {suite}"), None);
        match read(private_command("apt-get", &directory).arg("update")) {
            Ok(_) => step.done(),
            Err(error) => {
                why = error;
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

/// apt with all its state in `directory`. The one thing that it shares with
/// the machine is what is configured for reaching mirrors, such as a proxy.
fn private_command(program: &str, directory: &Path) -> Command {
    let mut command = command(program);
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
    // The cache may lie where apt's own user cannot look.
    command.args(["-o", "APT::Sandbox::User=root"]);
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
