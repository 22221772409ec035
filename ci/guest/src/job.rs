//! The job file: tells init what to run, and how.
//!
//! It is JSON, and part of the image. It contains the nonce, so init removes it
//! before the program starts.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;

/// The job file's path. Init removes it.
pub const PATH: &str = "/kcov-vm.job";

/// The job of a guest.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Job {
    /// The word that proves that a frame belongs to this boot.
    pub nonce: String,
    /// The serial line that carries the frames. NetBSD's has `*` for its
    /// number.
    pub channel: String,
    /// The way to end the guest.
    pub shutdown: Shutdown,
    /// File systems to mount, in order.
    pub mounts: Vec<Mount>,
    /// The directory to send to the host after the program has ended.
    pub send_back: Option<String>,
    /// The file to be the program's standard input. Init removes it.
    pub stdin: Option<String>,
    /// Whether the program's standard output and standard error are one.
    pub one_output: bool,
    /// The terminal to run the program on. Its output is then not sent.
    pub terminal: Option<String>,
    /// The program's working directory.
    pub cwd: OsString,
    /// The program's whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The program and its arguments. Without them the guest only boots and
    /// ends.
    pub argv: Vec<OsString>,
    /// The program's own word for itself, instead of its path.
    pub word: Option<OsString>,
}

/// A file system for init to mount.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Mount {
    /// The file system's type.
    pub kind: String,
    /// The mount point. Init makes it if it is missing.
    pub target: String,
    /// Mount options, separated by commas.
    pub options: String,
    /// Whether the program can run without it.
    pub optional: bool,
}

/// The way to end a guest.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Shutdown {
    /// Power off the machine.
    #[default]
    PowerOff,
    /// Restart. For machines that cannot power off and exit on a restart.
    Restart,
    /// Wait for the host to end the guest. For kernels that may panic during
    /// shutdown, after all reports.
    Wait,
}

impl Job {
    /// Writes the job file.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("JSON can represent a job")
    }

    /// Parses a job file.
    pub fn decode(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("job file: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;

    #[test]
    fn a_job_survives_the_file() {
        let bytes = OsString::from_vec((0..=255).collect());
        let job = Job {
            shutdown: Shutdown::Wait,
            env: vec![("A".into(), bytes.clone())],
            argv: vec!["/p".into(), bytes],
            ..Job::default()
        };
        assert_eq!(Job::decode(&job.encode()), Ok(job));
    }
}
