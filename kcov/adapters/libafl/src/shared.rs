//! Memory that a parent and its children share.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::param::page_size;
use std::io;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicUsize;

/// A page of words, initially zero, that this process shares with the children it forks later. A
/// child may write anything to it.
#[derive(Debug)]
pub(crate) struct Shared(NonNull<[AtomicUsize]>);

impl Shared {
    pub(crate) fn new() -> io::Result<Shared> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let page = unsafe { mmap_anonymous(null_mut(), page_size(), protection, MapFlags::SHARED) };
        let page = NonNull::new(page?.cast()).expect("mmap never returns null");
        Ok(Shared(NonNull::slice_from_raw_parts(page, page_size() / size_of::<usize>())))
    }
}

impl Deref for Shared {
    type Target = [AtomicUsize];

    fn deref(&self) -> &[AtomicUsize] {
        // SAFETY: `new` mapped these words, page-aligned and zeroed, and only `drop` unmaps them. This
        // process accesses them only through this method, atomically; what other processes store
        // changes the values and nothing else.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this page, and no reference from `deref` outlives `self`.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), page_size()) };
    }
}
