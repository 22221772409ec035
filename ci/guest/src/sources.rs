//! The sources of this crate, for a runner that builds init without the workspace.

/// The files and their contents.
pub const SOURCES: &[(&str, &str)] = &[
    ("src/bin/fixture.rs", include_str!("bin/fixture.rs")),
    ("src/bin/init.rs", include_str!("bin/init.rs")),
    ("src/escape.rs", include_str!("escape.rs")),
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
    "rustix = { version = \"1.1\", default-features = false, features = [\"fs\", \"mount\", ",
    "\"process\", \"std\", \"stdio\", \"system\", \"termios\"] }\n\n",
    "[profile.guest]\ninherits = \"dev\"\nopt-level = 2\ndebug = false\nstrip = true\n\n",
    "[workspace]\n",
);

#[cfg(test)]
mod tests {
    use super::SOURCES;
    use std::fs;
    use std::path::Path;

    #[test]
    fn all_files_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for directory in ["src", "src/bin", "src/sys"] {
            for entry in fs::read_dir(root.join(directory)).expect("a directory") {
                let entry = entry.expect("an entry");
                if entry.path().is_file() {
                    files.push(format!("{directory}/{}", entry.file_name().to_string_lossy()));
                }
            }
        }
        files.sort_unstable();
        let known: Vec<_> = SOURCES.iter().map(|(path, _)| *path).collect();
        assert_eq!(files, known);
    }
}
