//! Finds out which proposals a kernel implements, by what it does, not by what it accepts.

use super::{
    EdgeDevice, ExtendedPc, Presence, Proposals, RecordKind, UniqCmp, UniqEdge, UniqueEnable,
};
use crate::buffer::Width;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::TracePc;
use crate::sys::{self, Request};
use crate::trace::Trace;
use kcov_sys::linux::proposed::KCOV_TRACE_PC_EXT;

/// Tries all proposals. The thread must not be traced, and the device must not be enabled.
pub(crate) fn probe(mut device: Device) -> Result<Proposals, Error> {
    let mut found = Proposals::default();
    if !device.system().has_handles {
        return Ok(found);
    }
    found.unique_enable = unique_enable(&mut device)?;
    (found.unique_modes, device) = unique_modes(device)?;
    match found.unique_modes {
        // In this proposal, mode 2 has another meaning.
        Presence::Present => {
            found.unique_comparisons = device.enable(UniqCmp(())).is_ok();
        }
        _ => found.extended_records = extended_records(&device)?,
    }
    Ok(found)
}

fn unique_enable(device: &mut Device) -> Result<Presence, Error> {
    // A kernel that knows the request refuses an empty bitmap; each proposal does so with another
    // error.
    match device
        .begin(Operation::EnableUnique, Width::W64, |file| file.request(Request::EnableUnique(0)))
    {
        Err(error) if error.kind() == ErrorKind::ModeNotBuiltIn => return Ok(Presence::NotBuiltIn),
        // Neither the device nor the thread is enabled, so the kernel refused the bitmap.
        Err(error) if error.kind() == ErrorKind::AlreadyEnabled => {}
        // Another proposal's request with this number.
        Ok(()) => {
            device.request_disable()?;
            return Ok(Presence::Absent);
        }
        Err(_) => return Ok(Presence::Absent),
    }
    let bitmap_words = device.words() / 2;
    let Ok(session) = UniqueEnable(()).enable(device, bitmap_words) else {
        return Ok(Presence::Absent);
    };
    sys::provoke();
    let bitmap = session.bitmap();
    let bits = (0..bitmap.len()).any(|word| bitmap.get(word) != Some(0));
    let unique = bits && !session.disable()?.is_empty();
    Ok(if unique { Presence::Present } else { Presence::Absent })
}

fn unique_modes(device: Device) -> Result<(Presence, Device), Error> {
    // Enable edges alone: no other proposal uses that mode, or has a second buffer.
    if EdgeDevice::map(&device).is_err() {
        return Ok((Presence::Absent, device));
    }
    let mut edges = EdgeDevice::new(device, UniqEdge(()))?;
    let present = match edges.enable() {
        Ok(session) => {
            sys::provoke();
            let (pcs, edges) = session.disable()?;
            pcs.is_empty() && !edges.is_empty()
        }
        Err(_) => false,
    };
    Ok((if present { Presence::Present } else { Presence::Absent }, edges.into_device()))
}

fn extended_records(device: &Device) -> Result<Presence, Error> {
    match device.begin(Operation::Enable, Width::W64, |file| {
        file.request(Request::Enable(KCOV_TRACE_PC_EXT))
    }) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::ModeNotBuiltIn => return Ok(Presence::NotBuiltIn),
        Err(_) => return Ok(Presence::Absent),
    }
    sys::provoke();
    let trace = Trace::freeze(device.buffer(), TracePc);
    device.request_disable()?;
    let has =
        |kind| trace.iter().any(|record| ExtendedPc::from_word(record.address()).kind() == kind);
    let kinds = [RecordKind::Entry, RecordKind::Exit, RecordKind::Normal];
    Ok(if kinds.into_iter().all(has) { Presence::Present } else { Presence::Absent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Kernel;

    /// A kernel with memory accesses does not know the request either: its request 103 has no
    /// argument, and so another number.
    #[test]
    fn an_unknown_request_is_no_bitmap() {
        let kernel = Kernel::linux();
        let mut device = kernel.builder().open().unwrap();
        assert_eq!(unique_enable(&mut device).unwrap(), Presence::Absent);
        assert_eq!(probe(device).unwrap(), Proposals::default());
        let mut device = kernel.builder().open().unwrap();
        assert!(device.enable(TracePc).is_ok(), "the probe leaves nothing enabled");
    }
}
