//! The rules of NetBSD 10, `sys/kern/subr_kcov.c`. A test of the conformance suite compares them
//! with the suite's model.

use super::state::{Enabled, Memory, Mode, Source, State, memory, whole_pages};
use crate::buffer::Width;
use crate::error::netbsd::{EBUSY, EEXIST, EINVAL, ENOBUFS, ENOENT, ENOMEM};
use crate::sys::Request;
use crate::system::NETBSD;
use kcov_sys::netbsd::{
    KCOV_BUF_MAX_ENTRIES, KCOV_MODE_NONE, KCOV_MODE_TRACE_CMP, KCOV_MODE_TRACE_PC,
    KCOV_REMOTE_VHCI, kcov_ioc_remote_attach,
};
use std::ffi::c_int;
use std::thread;

/// Number of ports on the only bus.
const PORTS: u64 = 8;

pub(super) fn request(state: &mut State, instance: u64, request: Request<'_>) -> Result<(), i32> {
    match request {
        Request::SetSize(_, words) => set_size(state, instance, words),
        Request::Enable(mode) => enable(state, instance, mode),
        Request::Disable => disable(state, instance),
        Request::Attach(source) => attach(state, instance, source),
        Request::Detach => detach(state, instance),
        _ => Err(EINVAL),
    }
}

fn set_size(state: &mut State, instance: u64, words: u64) -> Result<(), i32> {
    let (least, greatest) = (NETBSD.limits)(Width::W64);
    let instance = state.instance(instance);
    if instance.source.is_some() {
        return Ok(());
    }
    if instance.enabled.is_some() {
        return Err(EBUSY);
    }
    if !(least..=greatest).contains(&words) {
        return Err(EINVAL);
    }
    if instance.memory.is_some() {
        return Err(EEXIST);
    }
    instance.memory = Some(memory(words));
    Ok(())
}

fn enable(state: &mut State, instance: u64, number: u32) -> Result<(), i32> {
    let mode = match number as c_int {
        KCOV_MODE_NONE => Mode::None,
        KCOV_MODE_TRACE_PC => Mode::Pc,
        KCOV_MODE_TRACE_CMP => Mode::Cmp,
        _ => return Err(EINVAL),
    };
    if let Some(source) = state.instance(instance).source {
        let source = state.sources.get_mut(&source).ok_or(ENOENT)?;
        if source.mode.is_some() {
            return Err(EBUSY);
        }
        source.mode = Some(mode);
        return Ok(());
    }
    if state.instance(instance).enabled.is_some() || state.task().local.is_some() {
        return Err(EBUSY);
    }
    if state.instance(instance).memory.is_none() {
        return Err(ENOBUFS);
    }
    state.task().local = Some(instance);
    let owner = thread::current().id();
    state.instance(instance).enabled = Some(Enabled { owner, mode, handles: None, area: 0 });
    Ok(())
}

fn disable(state: &mut State, instance: u64) -> Result<(), i32> {
    if let Some(source) = state.instance(instance).source {
        return if state.disable_source(source) { Ok(()) } else { Err(ENOENT) };
    }
    if state.task().local != Some(instance) {
        return Err(ENOENT);
    }
    state.reset(instance);
    Ok(())
}

fn attach(state: &mut State, instance: u64, source: &kcov_ioc_remote_attach) -> Result<(), i32> {
    if state.instance(instance).enabled.is_some() {
        return Err(EEXIST);
    }
    if source.subsystem != KCOV_REMOTE_VHCI || source.id >= PORTS {
        return Err(ENOENT);
    }
    let name = (source.subsystem, source.id);
    state.sources.entry(name).or_default();
    state.instance(instance).source = Some(name);
    Ok(())
}

fn detach(state: &mut State, instance: u64) -> Result<(), i32> {
    if state.instance(instance).enabled.is_some() {
        return Err(EEXIST);
    }
    let source = state.instance(instance).source.take().ok_or(ENOENT)?;
    state.disable_source(source);
    Ok(())
}

pub(super) fn map(state: &mut State, instance: u64, bytes: usize) -> Result<Memory, i32> {
    let bytes = whole_pages(bytes);
    if bytes == 0 || bytes as u64 > KCOV_BUF_MAX_ENTRIES * 8 {
        return Err(EINVAL);
    }
    let instance = state.instance(instance);
    let source = instance.source;
    let own = instance.memory.clone();
    let memory = match source {
        Some(source) => state.sources.get_mut(&source).map(Source::memory),
        None => own,
    };
    memory.filter(|memory| bytes <= whole_pages(size_of_val(&**memory))).ok_or(ENOMEM)
}
