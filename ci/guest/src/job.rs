//! The job file: tells init what to run, and how.
//!
//! Each line has a key and a value, separated by a space. Values are
//! [escaped](crate::escape). The file is part of the image. It contains the
//! nonce, so init removes it before the program starts.

use crate::escape::{escape, unescape};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The job file's path. Init removes it.
pub const PATH: &str = "/kcov-vm.job";

/// The job of a guest.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
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
    /// Settings in `/proc/sys`, as `name` (with dots or slashes) and value.
    pub sysctl: Vec<(String, String)>,
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
#[derive(Clone, Debug, Eq, PartialEq)]
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
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
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
        let mut text = String::new();
        let mut line = |key: &str, value: &[u8]| {
            text.push_str(key);
            text.push(' ');
            text.push_str(&escape(value));
            text.push('\n');
        };
        line("nonce", self.nonce.as_bytes());
        line("channel", self.channel.as_bytes());
        line(
            "shutdown",
            match self.shutdown {
                Shutdown::PowerOff => b"power-off",
                Shutdown::Restart => b"restart",
                Shutdown::Wait => b"wait",
            },
        );
        for mount in &self.mounts {
            let key = if mount.optional { "mount-optional" } else { "mount" };
            let Mount { kind, target, options, .. } = mount;
            line(key, format!("{kind} {target} {options}").as_bytes());
        }
        if let Some(path) = &self.send_back {
            line("send-back", path.as_bytes());
        }
        if let Some(path) = &self.stdin {
            line("stdin", path.as_bytes());
        }
        if let Some(path) = &self.terminal {
            line("terminal", path.as_bytes());
        }
        for (name, value) in &self.sysctl {
            line("sysctl", format!("{name}={value}").as_bytes());
        }
        if self.one_output {
            line("one-output", b"");
        }
        line("cwd", self.cwd.as_bytes());
        for (name, value) in &self.env {
            line("env", &[name.as_bytes(), b"=", value.as_bytes()].concat());
        }
        for argument in &self.argv {
            line("arg", argument.as_bytes());
        }
        if let Some(word) = &self.word {
            line("word", word.as_bytes());
        }
        text
    }

    /// Parses a job file. The error names the bad line.
    pub fn decode(text: &str) -> Result<Self, String> {
        let mut job = Self::default();
        for line in text.lines() {
            job.line(line).ok_or_else(|| format!("job file: cannot read `{line}`"))?;
        }
        Ok(job)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (key, value) = line.split_once(' ')?;
        let bytes = unescape(value)?;
        match key {
            "arg" => self.argv.push(OsString::from_vec(bytes)),
            "cwd" => self.cwd = OsString::from_vec(bytes),
            "word" => self.word = Some(OsString::from_vec(bytes)),
            _ => return self.text(key, bytes),
        }
        Some(())
    }

    /// Takes a value that is not just bytes.
    fn text(&mut self, key: &str, bytes: Vec<u8>) -> Option<()> {
        if key == "env" {
            let at = bytes.iter().position(|&byte| byte == b'=')?;
            let part = |bytes: &[u8]| OsStr::from_bytes(bytes).to_os_string();
            self.env.push((part(&bytes[..at]), part(&bytes[at + 1..])));
            return Some(());
        }
        let text = String::from_utf8(bytes).ok()?;
        match key {
            "nonce" => self.nonce = text,
            "channel" => self.channel = text,
            "send-back" => self.send_back = Some(text),
            "stdin" => self.stdin = Some(text),
            "one-output" if text.is_empty() => self.one_output = true,
            "terminal" => self.terminal = Some(text),
            "shutdown" => {
                self.shutdown = match text.as_str() {
                    "power-off" => Shutdown::PowerOff,
                    "restart" => Shutdown::Restart,
                    "wait" => Shutdown::Wait,
                    _ => return None,
                }
            }
            "mount" | "mount-optional" => {
                let (kind, rest) = text.split_once(' ')?;
                let (target, options) = rest.split_once(' ')?;
                self.mounts.push(Mount {
                    kind: kind.to_string(),
                    target: target.to_string(),
                    options: options.to_string(),
                    optional: key == "mount-optional",
                });
            }
            "sysctl" => {
                let (name, value) = text.split_once('=')?;
                self.sysctl.push((name.to_string(), value.to_string()));
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_the_file() {
        let mount = |kind: &str, target: &str, options: &str, optional| Mount {
            kind: kind.into(),
            target: target.into(),
            options: options.into(),
            optional,
        };
        let job = Job {
            nonce: "abc".into(),
            channel: "/dev/ttyS0".into(),
            shutdown: Shutdown::default(),
            mounts: vec![
                mount("proc", "/proc", "", false),
                mount("devpts", "/dev/pts", "gid=5,mode=620", true),
            ],
            send_back: Some("/scratch".into()),
            stdin: Some("/stdin".into()),
            one_output: true,
            terminal: Some("/dev/tty0".into()),
            sysctl: vec![("kernel.printk".into(), "8 4 1 7".into())],
            cwd: "/tmp".into(),
            env: vec![("A".into(), "b=c\nd".into()), ("EMPTY".into(), "".into())],
            argv: vec!["/p".into(), "".into(), OsString::from_vec(vec![0xff, b'\n'])],
            word: Some("p".into()),
        };
        for shutdown in [Shutdown::PowerOff, Shutdown::Restart, Shutdown::Wait] {
            let job = Job { shutdown, ..job.clone() };
            assert_eq!(Job::decode(&job.encode()), Ok(job));
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        for line in
            ["what is this", "nonce", "shutdown never", "mount proc /proc", "sysctl a", "arg \\q"]
        {
            assert_eq!(Job::decode(line), Err(format!("job file: cannot read `{line}`")));
        }
    }
}
