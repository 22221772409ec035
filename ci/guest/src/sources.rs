//! The sources of this crate, for a runner that builds init without the workspace.

/// The files and their contents.
pub const SOURCES: &[(&str, &str)] = &[
    ("src/bin/init.rs", include_str!("bin/init.rs")),
    ("src/fuzz.rs", include_str!("fuzz.rs")),
    ("src/fuzz/slot.rs", include_str!("fuzz/slot.rs")),
    ("src/job.rs", include_str!("job.rs")),
    ("src/lib.rs", include_str!("lib.rs")),
    ("src/protocol.rs", include_str!("protocol.rs")),
    ("src/sources.rs", include_str!("sources.rs")),
    ("src/sys/linux.rs", include_str!("sys/linux.rs")),
    ("src/sys/mod.rs", include_str!("sys/mod.rs")),
    ("src/sys/netbsd.rs", include_str!("sys/netbsd.rs")),
];

/// A manifest that needs no other.
pub const MANIFEST: &str = concat!(
    "[package]\nname = \"kcov-vm-guest\"\nversion = \"",
    env!("CARGO_PKG_VERSION"),
    "\"\nedition = \"2024\"\n\n",
    "[[bin]]\nname = \"kcov-vm-init\"\npath = \"src/bin/init.rs\"\n\n",
    "[dependencies]\n",
    "libc = \"0.2.170\"\n",
    "rustix = { version = \"1.1\", default-features = false, features = [\"fs\", \"mm\", \"mount\", ",
    "\"pipe\", \"process\", \"std\", \"stdio\", \"system\", \"termios\"] }\n",
    "serde = { version = \"1\", features = [\"derive\"] }\n",
    "serde_json = \"1\"\n\n",
    "[profile.guest]\ninherits = \"dev\"\nopt-level = 2\ndebug = false\nstrip = true\n\n",
    "[workspace]\n",
);

#[cfg(test)]
mod tests {
    use super::{MANIFEST, SOURCES};
    use std::fs;
    use std::path::Path;

    #[test]
    fn all_files_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for directory in ["src", "src/bin", "src/fuzz", "src/sys"] {
            for entry in fs::read_dir(root.join(directory)).expect("a directory") {
                let entry = entry.expect("an entry");
                if entry.path().is_file() {
                    files.push(format!("{directory}/{}", entry.file_name().to_string_lossy()));
                }
            }
        }
        files.sort_unstable();
        // Tests of the runner use the fixture; init is built without it.
        files.retain(|file| file != "src/bin/fixture.rs");
        let known: Vec<_> = SOURCES.iter().map(|(path, _)| *path).collect();
        assert_eq!(files, known);
    }

    #[test]
    fn the_manifest_has_the_workspaces_dependencies_and_profile() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let read = |file: &str| fs::read_to_string(root.join(file)).expect("a manifest");
        let workspace = read("../../Cargo.toml");
        let line = |name: &str| {
            let mut lines = workspace.lines();
            lines.find(|line| line.starts_with(&format!("{name} = "))).expect("a dependency")
        };
        for name in ["libc", "serde", "serde_json"] {
            assert!(MANIFEST.contains(&format!("\n{}\n", line(name))), "{name}: {MANIFEST}");
        }
        let package = read("Cargo.toml");
        let features =
            package.lines().find_map(|line| line.split_once("rustix = { workspace = true"));
        let rustix = line("rustix").trim_end_matches(" }").to_owned();
        assert!(
            MANIFEST.contains(&(rustix + features.expect("features of rustix").1)),
            "{MANIFEST}"
        );
        let profile = workspace.split_once("[profile.guest]\n").expect("a profile").1;
        let profile = profile.split("\n\n").next().expect("its lines").trim_end();
        let profile = format!("[profile.guest]\n{profile}\n\n");
        assert!(MANIFEST.contains(&profile), "{MANIFEST}\nlacks\n{profile}");
    }
}
