//! `trace`: runs a host program in a guest under the workspace's tracer. The
//! guest has no room for the kernel image, so the host looks up names and lines.

use super::{SCRATCH, pass_on, status, task};
use crate::cli::TraceOptions;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::run::command;
use crate::session::Session;
use crate::system::System;
use crate::target::Kind;
use kcov_vm_guest::protocol::Exit;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The tracer's time to write its data after the time limit.
const GRACE: Duration = Duration::from_secs(30);

/// The trace file in the guest.
const RAW: &str = "trace";

/// Runs the program, reports, and returns the program's exit status.
pub fn trace(mut session: Session, options: TraceOptions, verbose: bool) -> Result<u8> {
    session.choices.grace = GRACE;
    let session = &session;
    status(session, &options.run.name, |target| {
        if target.kind.system() != System::Linux {
            return Err(Error::usage(format!(
                "{}: `trace` is for Linux targets, because its tracer needs Linux's ptrace; run a \
                 program that uses the crate kcov with `exec`",
                target.name
            )));
        }
        let mut task = task(session, target, &options.run, None)?;
        let kernel = session.kernel(target)?;
        let tool = session.programs.tracer()?;
        let mut arguments: Vec<OsString> = ["--quiet", "--raw"].map(OsString::from).into();
        arguments.push(format!("{SCRATCH}/{RAW}").into());
        if let Some(words) = options.words {
            arguments.extend(["--words".into(), words.to_string().into()]);
        }
        // At the limit the tracer saves its data; after the grace period the runner ends the guest.
        let limit = session.program_limit(target).as_secs();
        arguments.extend(["--limit".into(), limit.to_string().into()]);
        arguments.push("--".into());
        let unfit = |why| Error::unavailable(Phase::Image, why);
        task.run_by(&tool, arguments).map_err(unfit)?;
        let back = tempfile::tempdir().or_unavailable(Phase::Image, "a temporary directory")?;
        let exit = pass_on(session, target, task, false, Some(back.path()), verbose)?;
        let raw = back.path().join(RAW);
        // The tracer has already said why.
        if !raw.is_file() {
            return match exit {
                Exit::Status(number) if number != 0 => Ok(exit),
                _ => Err(Error::unavailable(Phase::Verdict, "the guest left no trace")),
            };
        }
        let vmlinux = match target.kind {
            Kind::Uml => kernel.file,
            _ => kernel.file.with_file_name("vmlinux"),
        };
        report(&tool, &raw, &vmlinux, &options)?;
        Ok(exit)
    })
}

/// Makes the tracer print and write the report.
fn report(tool: &Path, raw: &Path, vmlinux: &Path, options: &TraceOptions) -> Result<()> {
    let mut command = command(tool);
    command.arg("--read").arg(raw);
    if vmlinux.is_file() {
        command.arg("--vmlinux").arg(vmlinux);
    } else {
        eprintln!("kcov-vm: the trace has no names: {} does not exist", vmlinux.display());
    }
    let TraceOptions { lines, pcs, quiet, .. } = *options;
    for (name, chosen) in [("--lines", lines), ("--pcs", pcs), ("--quiet", quiet)] {
        if chosen {
            command.arg(name);
        }
    }
    for (name, file) in
        [("--raw", &options.raw), ("--lcov", &options.lcov), ("--folded", &options.folded)]
    {
        if let Some(file) = file {
            command.arg(name).arg(file);
        }
    }
    let ended = command.status().or_unavailable(Phase::Verdict, tool.display())?;
    if ended.success() {
        return Ok(());
    }
    // It has said why.
    Err(Error::unavailable(Phase::Verdict, "the tracer made no report"))
}
