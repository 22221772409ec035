//! What a target declares its kernel to have, and the proof that it does.

use crate::kernel::{Version, this_program};
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal;)+) => {
        /// Something that a kernel may have or lack without breaking a promise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Feature {
            /// All of them, in the order in which they are probed.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant),+];

            /// The word that a target declares it by.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Feature::$variant => $word,)+ }
            }

            /// What it is, in a sentence or two.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Feature::$variant => concat!($($doc),+).trim_ascii_start(),)+ }
            }
        }
    };
}

features! {
    /// The device exists and can be opened.
    Kcov = "kcov";
    /// Kernel code reports to the device what it goes through.
    Instrumented = "instrumented";
    /// Comparison operands can be collected.
    Comparisons = "comparisons";
    /// Comparison mode does not trust the count word. Kernels without this bound write outside
    /// the buffer when the count is bad enough, so checks that store one need it.
    CmpBoundCheck = "cmp-bound-check";
    /// Coverage of background work can be collected.
    Remote = "remote";
    /// One thread may collect its own and remote coverage at once.
    LocalAndRemote = "local-and-remote";
    /// io_uring has kernel threads, and what they do is marked for remote collection.
    IoUring = "io-uring";
    /// A vhost device can be had, whose worker is marked for remote collection.
    Vhost = "vhost";
    /// A USB bus without hardware can be had, whose hub and devices are marked for remote
    /// collection.
    Usb = "usb";
    /// A Bluetooth controller without hardware can be had.
    Bluetooth = "bluetooth";
    /// An NFC controller without hardware can be had.
    Nfc = "nfc";
    /// There are two simulated radios.
    Wireless = "wireless";
    /// There is a USB host whose devices are at the other end of a socket.
    Usbip = "usbip";
    /// This program's `long` has 64 bits, so request arguments have.
    Long64 = "long64";
    /// The addresses that the kernel's code was linked for can be found out from what
    /// `/proc/kallsyms` shows.
    TextAddresses = "text-addresses";
    /// A list says where the kernel calls the hooks of coverage, made from the kernel's file.
    CallSites = "call-sites";
    /// A module of the kernel is at hand, with a list of where it calls the hooks of coverage.
    Module = "module";
    /// Memory can be protected by a key, the rights to which each thread has in a register.
    ProtectionKeys = "protection-keys";
    /// Memory that is freed is kept for a while, so that later accesses to it are found (KASAN).
    Quarantine = "quarantine";
    /// Allocations can be made to fail, and memory that is lost is found.
    FaultInjection = "fault-injection";
    /// Kernel code runs on two processors at once.
    Smp = "smp";
    /// The kernel tests kcov when it boots (`CONFIG_KCOV_SELFTEST`).
    SelfTest = "self-test";
    /// A page fault of the kernel waits until user space provides the page.
    Userfaultfd = "userfaultfd";
    /// Proposed: a mode whose records say whether a function is entered or left.
    TracePcExt = "trace-pc-ext";
    /// The kernel has the patch for `trace-pc-ext`, built with its option off.
    TracePcExtNotBuilt = "trace-pc-ext-not-built";
    /// Proposed: modes that record each program counter, edge or comparison once.
    UniqModes = "uniq-modes";
    /// Proposed: a request that enables with a bitmap, so that each program counter comes once.
    UniqueEnable = "unique-enable";
    /// The kernel has the patch for `unique-enable`, built with its option off.
    UniqueEnableNotBuilt = "unique-enable-not-built";
    /// Proposed: a request that empties the trace.
    ResetTrace = "reset-trace";
    /// The interface is that of NetBSD 9: no remote coverage.
    NetBsd9 = "netbsd-9";
    /// The interface is that of NetBSD 10: a descriptor can be attached to a source.
    NetBsd10 = "netbsd-10";
    /// NetBSD's virtual USB host controllers are there, the one source of remote coverage.
    Vhci = "vhci";
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The words that name systems, which a declaration may contain too.
pub const SYSTEMS: &[&str] = &["linux", "netbsd"];

/// What a target declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// The features, in the order of [`Feature::ALL`].
    pub features: Vec<Feature>,
    /// The system, if it is said.
    pub system: Option<&'static str>,
}

impl Declaration {
    /// Reads comma-separated words.
    pub fn parse(words: &str) -> Result<Declaration, String> {
        let mut declaration = Declaration::default();
        let mut named = Vec::new();
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if let Some(&system) = SYSTEMS.iter().find(|&&system| system == word) {
                declaration.system = Some(system);
            } else {
                named.push(*Feature::ALL.iter().find(|f| f.word() == word).ok_or_else(|| {
                    let known: Vec<_> = Feature::ALL.iter().map(|f| f.word()).collect();
                    format!(
                        "--declare: {word:?} is no feature; the words are {}, {}",
                        SYSTEMS.join(", "),
                        known.join(", ")
                    )
                })?);
            }
        }
        declaration.features = in_order(|feature| named.contains(&feature));
        Ok(declaration)
    }

    /// Whether it contains that feature.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// The version whose interface the kernel has.
    ///
    /// On NetBSD not the kernel's own: 9.99 names both kernels with the interface of 9 and with
    /// that of 10.
    #[must_use]
    pub fn interface(&self, kernel: Version) -> Version {
        let versions = [(Feature::NetBsd9, Version(9, 0)), (Feature::NetBsd10, Version(10, 0))];
        let declared = versions.into_iter().find(|(feature, _)| self.has(*feature));
        declared.map_or(kernel, |(_, version)| version)
    }

    /// The differences between what is declared and what was found, in words.
    #[must_use]
    pub fn mismatches(&self, found: &[Feature]) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(system) = self.system.filter(|&system| system != crate::system::WORD) {
            all.push(format!("{system} declared, this is {}", crate::system::WORD));
        }
        let absent = |feature| self.has(feature) && !found.contains(&feature);
        // Without the device nothing else was asked for.
        let asked: &[Feature] = if absent(Feature::Kcov) { &[Feature::Kcov] } else { Feature::ALL };
        for &feature in asked {
            match (self.has(feature), found.contains(&feature)) {
                (true, false) => all.push(format!("{feature} declared but absent")),
                (false, true) => all.push(format!("{feature} present but not declared")),
                _ => {}
            }
        }
        all
    }
}

fn in_order(wanted: impl Fn(Feature) -> bool) -> Vec<Feature> {
    Feature::ALL.iter().copied().filter(|&feature| wanted(feature)).collect()
}

/// Status with which a probing process says that the feature is absent.
pub const ABSENT: u8 = 3;

/// Asks the kernel for each feature, in one process each: what a probe enables dies with it.
/// Without the device the others are not asked for.
pub fn probe_all(device: &Path) -> Result<Vec<Feature>, String> {
    let mut found = Vec::new();
    if !probe(Feature::Kcov, device)? {
        return Ok(found);
    }
    for &feature in Feature::ALL {
        if probe(feature, device)? {
            found.push(feature);
        }
    }
    Ok(found)
}

fn probe(feature: Feature, device: &Path) -> Result<bool, String> {
    let failed = |what: String| format!("the probe for {feature} failed: {what}");
    let output = Command::new(this_program().map_err(|e| failed(e.to_string()))?)
        .args(["probe", feature.word(), "--device"])
        .arg(device)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    match output.status.code() {
        Some(0) => Ok(true),
        Some(code) if code == i32::from(ABSENT) => Ok(false),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(failed(format!("{}: {}", output.status, said.trim().replace('\n', "; "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Declaration, Feature};

    #[test]
    fn a_declaration_is_read_in_any_order() {
        let declaration = Declaration::parse("remote, linux,kcov,,").unwrap();
        assert_eq!(declaration.features, [Feature::Kcov, Feature::Remote]);
        assert_eq!(declaration.system, Some("linux"));
        assert_eq!(Declaration::parse(""), Ok(Declaration::default()));
    }

    #[test]
    fn an_unknown_word_is_named() {
        assert!(Declaration::parse("kcov,comparison").unwrap_err().contains("\"comparison\""));
    }

    #[test]
    fn mismatches_go_both_ways() {
        let declaration = Declaration::parse("kcov,remote").unwrap();
        assert_eq!(
            declaration.mismatches(&[Feature::Kcov, Feature::Comparisons]),
            ["comparisons present but not declared", "remote declared but absent"]
        );
        assert_eq!(declaration.mismatches(&[Feature::Kcov, Feature::Remote]), [""; 0]);
        assert_eq!(declaration.mismatches(&[]), ["kcov declared but absent"]);
    }

    #[test]
    fn the_system_is_compared_too() {
        let foreign = if crate::system::WORD == "linux" { "netbsd" } else { "linux" };
        assert_eq!(Declaration::parse(foreign).unwrap().mismatches(&[]).len(), 1);
    }
}
