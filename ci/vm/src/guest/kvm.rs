//! Finds out whether guests boot under KVM.

use super::process::HOST_SAYS;
use super::{Expect, Limits, Machine};
use crate::carry::Carried;
use crate::error::{Error, Result, Unavailable};
use crate::image::{self, Image};
use crate::system::System;
use crate::target::Accel;
use kcov_vm_guest::job::Job;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Tests whether this kernel boots under KVM here. The inner error says why not.
///
/// The device file proves nothing: nested virtualisation may refuse a register
/// or never run the guest. So the probe boots a guest, once for each boot of
/// the host and each kernel. The file `memory` stores the answer.
pub fn probe(
    machine: &Machine<'_>,
    init: &[u8],
    expect: &Expect,
    memory: &Path,
    logs: &Path,
) -> Result<std::result::Result<(), String>> {
    const LIMIT: Duration = Duration::from_secs(5);
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        return Ok(Err(format!("/dev/kvm: {error}")));
    }
    let key = probe_key(&machine.kernel);
    if let Some(answer) = key.as_deref().and_then(|key| recall(memory, key)) {
        return Ok(answer);
    }
    let machine = Machine { accel: Accel::Kvm, ..machine.clone() };
    let job = Job {
        nonce: image::nonce(),
        channel: machine.channel(),
        shutdown: machine.shutdown(),
        mounts: image::mounts(System::Linux),
        ..Job::default()
    };
    let limits = Limits { boot: LIMIT, program: LIMIT, ..Limits::default() };
    let image = Image { init, job: &job, carried: &Carried::default() };
    let answer = super::boot(&machine, &image, limits, expect, logs, &mut ());
    let answer = match answer {
        Ok(_) => Ok(()),
        Err(Error::Unavailable(Unavailable { message, detail, phase, .. })) => {
            // QEMU's own message says more, if there is one.
            let said = detail.iter().find_map(|line| line.strip_prefix(HOST_SAYS));
            Err(said.map_or_else(|| format!("{phase}: {message}"), str::to_string))
        }
        Err(error) => return Err(error),
    };
    if let Some(key) = key {
        let text = answer.as_ref().map_or_else(String::as_str, |()| "yes");
        // A lost answer only costs another probe.
        let _ = fs::write(memory, format!("{key}\n{text}\n"));
    }
    Ok(answer)
}

fn probe_key(kernel: &Path) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let metadata = fs::metadata(kernel).ok()?;
    let time = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} {} {} {time:?}", boot.trim(), kernel.display(), metadata.len()))
}

fn recall(memory: &Path, key: &str) -> Option<std::result::Result<(), String>> {
    let text = fs::read_to_string(memory).ok()?;
    let answer = text.strip_prefix(key)?.strip_prefix('\n')?.trim_end();
    Some(if answer == "yes" { Ok(()) } else { Err(answer.into()) })
}
