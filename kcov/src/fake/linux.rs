//! The rules of Linux 7.3, `kernel/kcov.c`. A test of the conformance suite compares them with the
//! suite's model.

use super::state::{Enabled, Memory, Mode, State, memory, whole_pages};
use crate::buffer::Width;
use crate::error::linux::{EBUSY, EEXIST, EINVAL, ENOMEM, ENOTSUPP, ENOTTY};
use crate::remote::linux::Argument;
use crate::sys::Request;
use crate::system::LINUX;
use kcov_sys::linux::{
    KCOV_INSTANCE_MASK, KCOV_SUBSYSTEM_COMMON, KCOV_SUBSYSTEM_MASK, KCOV_SUBSYSTEM_USB,
    KCOV_TRACE_CMP, KCOV_TRACE_PC,
};
use std::thread;

/// Allocating more words than this fails: 1 GiB.
const MOST: u64 = 1 << 27;

pub(super) fn request(state: &mut State, instance: u64, request: Request<'_>) -> Result<(), i32> {
    match request {
        Request::SetSize(_, words) => set_size(state, instance, words),
        Request::Enable(mode) => enable(state, instance, mode),
        Request::Disable => disable(state, instance),
        Request::EnableRemote(argument) => enable_remote(state, instance, argument),
        _ => Err(ENOTTY),
    }
}

fn set_size(state: &mut State, instance: u64, words: u64) -> Result<(), i32> {
    let (least, greatest) = (LINUX.limits)(Width::W64);
    if !(least..=greatest).contains(&words) {
        return Err(EINVAL);
    }
    if words > MOST {
        return Err(ENOMEM);
    }
    let instance = state.instance(instance);
    if instance.memory.is_some() {
        return Err(EBUSY);
    }
    instance.memory = Some(memory(words));
    Ok(())
}

fn mode(state: &State, number: u32) -> Result<Mode, i32> {
    match number {
        KCOV_TRACE_PC => Ok(Mode::Pc),
        KCOV_TRACE_CMP if state.lacks_comparisons => Err(ENOTSUPP),
        KCOV_TRACE_CMP => Ok(Mode::Cmp),
        _ => Err(EINVAL),
    }
}

fn is_ready(state: &mut State, instance: u64) -> bool {
    let instance = state.instance(instance);
    instance.memory.is_some() && instance.enabled.is_none()
}

fn enable(state: &mut State, instance: u64, number: u32) -> Result<(), i32> {
    if !is_ready(state, instance) {
        return Err(EINVAL);
    }
    if state.task().local.is_some() {
        return Err(EBUSY);
    }
    let mode = mode(state, number)?;
    state.task().local = Some(instance);
    let owner = thread::current().id();
    state.instance(instance).enabled = Some(Enabled { owner, mode, handles: None, area: 0 });
    Ok(())
}

fn disable(state: &mut State, instance: u64) -> Result<(), i32> {
    let task = state.task();
    if task.local != Some(instance) && task.remote != Some(instance) {
        return Err(EINVAL);
    }
    state.reset(instance);
    Ok(())
}

fn enable_remote(state: &mut State, instance: u64, argument: &Argument) -> Result<(), i32> {
    let given = argument.handles.get(..argument.num_handles as usize).ok_or(EINVAL)?;
    if !is_ready(state, instance) {
        return Err(EINVAL);
    }
    if state.task().remote.is_some() {
        return Err(EBUSY);
    }
    let mode = mode(state, argument.trace_mode)?;
    let of = |handle: u64, subsystem| {
        handle & !KCOV_INSTANCE_MASK == subsystem && handle & KCOV_SUBSYSTEM_MASK == subsystem
    };
    let mut handles = Vec::new();
    let common = Some(argument.common_handle).filter(|common| *common != 0);
    for (&handle, subsystem) in given
        .iter()
        .map(|handle| (handle, KCOV_SUBSYSTEM_USB))
        .chain(common.iter().map(|common| (common, KCOV_SUBSYSTEM_COMMON)))
    {
        if !of(handle, subsystem) {
            return Err(EINVAL);
        }
        if handles.contains(&handle) || state.collects(handle).is_some() {
            return Err(EEXIST);
        }
        handles.push(handle);
    }
    state.task().remote = Some(instance);
    let owner = thread::current().id();
    let area = argument.area_size;
    state.instance(instance).enabled = Some(Enabled { owner, mode, handles: Some(handles), area });
    Ok(())
}

impl State {
    /// The instance that collects from a handle.
    pub(super) fn collects(&self, handle: u64) -> Option<u64> {
        let mut all = self.instances.iter();
        let found = all.find(|(_, instance)| {
            let handles = instance.enabled.as_ref().and_then(|enabled| enabled.handles.as_ref());
            handles.is_some_and(|handles| handles.contains(&handle))
        });
        found.map(|(instance, _)| *instance)
    }
}

/// The kernel accepts a size of partial pages but cannot map it.
pub(super) fn map(state: &mut State, instance: u64, bytes: usize) -> Result<Memory, i32> {
    let memory = state.instance(instance).memory.clone().ok_or(EINVAL)?;
    if size_of_val(&*memory) == whole_pages(bytes) { Ok(memory) } else { Err(EINVAL) }
}
