//! How to install packages, in the words of the host's package manager.

/// Package managers and their commands. Debian's own comes first.
const MANAGERS: [(&str, &str); 5] = [
    ("apt-get", "apt-get install --no-install-recommends"),
    ("dnf", "dnf install"),
    ("pacman", "pacman -S"),
    ("apk", "apk add"),
    ("nix-shell", "nix-shell -p"),
];

/// Debian's names of packages, and those of the other managers. The names of cross compilers differ
/// too much to be listed.
const NAMES: &[(&str, [&str; 4])] = &[
    ("make", ["make", "make", "make", "gnumake"]),
    ("gcc", ["gcc"; 4]),
    ("binutils", ["binutils"; 4]),
    ("flex", ["flex"; 4]),
    ("bison", ["bison"; 4]),
    ("bc", ["bc"; 4]),
    ("libc6-dev", ["glibc-devel", "glibc", "musl-dev linux-headers", "stdenv"]),
    ("libelf-dev", ["elfutils-libelf-devel", "libelf", "elfutils-dev", "elfutils"]),
    ("libssl-dev", ["openssl-devel", "openssl", "openssl-dev", "openssl"]),
    ("tar", ["tar", "tar", "tar", "gnutar"]),
    ("xz-utils", ["xz"; 4]),
    ("patch", ["patch", "patch", "patch", "gnupatch"]),
    ("qemu-system-x86", ["qemu-system-x86-core", "qemu-system-x86", "qemu-system-x86_64", "qemu"]),
    (
        "qemu-system-arm",
        ["qemu-system-aarch64-core", "qemu-system-aarch64", "qemu-system-aarch64", "qemu"],
    ),
];

/// Says how to install these packages of Debian with the manager that is `there`.
pub(super) fn advice(packages: &[&'static str], there: impl Fn(&str) -> bool) -> String {
    let manager = MANAGERS.iter().position(|(program, _)| there(program)).unwrap_or(0);
    let (mut known, mut other) = (vec![MANAGERS[manager].1], Vec::new());
    for package in packages {
        let names = NAMES.iter().find(|(debian, _)| debian == package);
        match (manager.checked_sub(1), names) {
            (None, _) => known.push(package),
            (Some(manager), Some((_, names))) => known.push(names[manager]),
            (Some(_), None) => other.push(*package),
        }
    }
    let mut parts = Vec::new();
    if known.len() > 1 {
        parts.push(format!("install with: {}", known.join(" ")));
    }
    if !other.is_empty() {
        parts.push(format!("install what Debian calls {}", other.join(" ")));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_manager_has_its_words() {
        for (program, said) in [
            ("apt-get", "apt-get install --no-install-recommends make libelf-dev makefs"),
            ("none", "apt-get install --no-install-recommends make libelf-dev makefs"),
            ("dnf", "dnf install make elfutils-libelf-devel; install what Debian calls makefs"),
            ("pacman", "pacman -S make libelf; install what Debian calls makefs"),
            ("apk", "apk add make elfutils-dev; install what Debian calls makefs"),
            ("nix-shell", "nix-shell -p gnumake elfutils; install what Debian calls makefs"),
        ] {
            let packages = ["make", "libelf-dev", "makefs"];
            let found = advice(&packages, |name| name == program);
            assert_eq!(found, format!("install with: {said}"));
        }
    }
}
