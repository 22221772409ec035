//! How to install packages, in the words of the host's package manager.

/// A package manager.
struct Manager {
    program: &'static str,
    install: &'static str,
    /// Debian's names of packages and this manager's.
    names: &'static [(&'static str, &'static str)],
}

/// Debian's own manager comes first. The names of cross compilers differ too much to be listed.
const MANAGERS: &[Manager] = &[
    Manager { program: "apt-get", install: "apt-get install --no-install-recommends", names: &[] },
    Manager {
        program: "dnf",
        install: "dnf install",
        names: &[
            ("libc6-dev", "glibc-devel"),
            ("libelf-dev", "elfutils-libelf-devel"),
            ("libssl-dev", "openssl-devel"),
            ("xz-utils", "xz"),
            ("qemu-system-x86", "qemu-system-x86-core"),
            ("qemu-system-arm", "qemu-system-aarch64-core"),
        ],
    },
    Manager {
        program: "pacman",
        install: "pacman -S",
        names: &[
            ("libc6-dev", "glibc"),
            ("libelf-dev", "libelf"),
            ("libssl-dev", "openssl"),
            ("xz-utils", "xz"),
            ("qemu-system-x86", "qemu-system-x86"),
            ("qemu-system-arm", "qemu-system-aarch64"),
        ],
    },
    Manager {
        program: "apk",
        install: "apk add",
        names: &[
            ("libc6-dev", "musl-dev linux-headers"),
            ("libelf-dev", "elfutils-dev"),
            ("libssl-dev", "openssl-dev"),
            ("xz-utils", "xz"),
            ("qemu-system-x86", "qemu-system-x86_64"),
            ("qemu-system-arm", "qemu-system-aarch64"),
        ],
    },
    Manager {
        program: "nix-shell",
        install: "nix-shell -p",
        names: &[
            ("make", "gnumake"),
            ("libc6-dev", "stdenv"),
            ("libelf-dev", "elfutils"),
            ("libssl-dev", "openssl"),
            ("tar", "gnutar"),
            ("xz-utils", "xz"),
            ("patch", "gnupatch"),
            ("ca-certificates", "cacert"),
            ("qemu-system-x86", "qemu"),
            ("qemu-system-arm", "qemu"),
        ],
    },
];

/// Packages with the same name everywhere, unless a manager lists another.
const COMMON: &[&str] =
    &["make", "gcc", "binutils", "flex", "bison", "bc", "tar", "patch", "curl", "ca-certificates"];

/// Says how to install these packages of Debian with the manager that is `there`.
pub(super) fn advice(packages: &[&'static str], there: &dyn Fn(&str) -> bool) -> String {
    let debian = &MANAGERS[0];
    let manager = MANAGERS.iter().find(|manager| there(manager.program)).unwrap_or(debian);
    let mut known = vec![manager.install];
    let mut other = Vec::new();
    for package in packages {
        match manager.names.iter().find(|(debian, _)| debian == package) {
            Some((_, name)) => known.push(name),
            None if manager.names.is_empty() || COMMON.contains(package) => known.push(package),
            None => other.push(*package),
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
        let packages = ["make", "libelf-dev", "qemu-system-x86"];
        let advice = |program: &str| advice(&packages, &|name| name == program);
        let apt = "install with: apt-get install --no-install-recommends \
                   make libelf-dev qemu-system-x86";
        assert_eq!(advice("apt-get"), apt);
        assert_eq!(advice("none"), apt);
        let dnf = "install with: dnf install make elfutils-libelf-devel qemu-system-x86-core";
        assert_eq!(advice("dnf"), dnf);
        assert_eq!(advice("pacman"), "install with: pacman -S make libelf qemu-system-x86");
        assert_eq!(advice("apk"), "install with: apk add make elfutils-dev qemu-system-x86_64");
        assert_eq!(advice("nix-shell"), "install with: nix-shell -p gnumake elfutils qemu");
    }

    #[test]
    fn unknown_names_are_left_to_the_reader() {
        let said = advice(&["makefs", "binutils"], &|name| name == "apk");
        assert_eq!(said, "install with: apk add binutils; install what Debian calls makefs");
    }
}
