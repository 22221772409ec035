//! Tarballs, which are known by their names.

use std::path::Path;

/// The message for an unknown file type.
pub const NO_TARBALL: &str = "is not a tarball by its name (.tar, .tar.xz, .tar.gz, …)";

/// The tar option for a file's compression. tar cannot detect it in a pipe.
pub fn compression(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    [
        (".tar", "--no-auto-compress"),
        (".tar.xz", "--xz"),
        (".tar.gz", "--gzip"),
        (".tgz", "--gzip"),
        (".tar.bz2", "--bzip2"),
        (".tar.zst", "--zstd"),
    ]
    .into_iter()
    .find_map(|(suffix, option)| name.ends_with(suffix).then_some(option))
}
