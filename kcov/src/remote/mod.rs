//! Coverage from work that the kernel does outside the calling thread.
//!
//! A [`Session`](crate::Session) records what its own thread executes in the kernel. Work elsewhere
//! is recorded in *sections*, where the kernel marks the source of the work. Each system has its
//! own way to request sections:
//!
//! | | [Linux](linux) | [NetBSD](netbsd), 10 and later |
//! |---|---|---|
//! | names | up to 256 handles and a common one | one source |
//! | call | [`Device::enable_remote`] | [`Device::attach`], [`Attachment::enable`] |
//! | buffer | the device's own | the source's, shared by all who attach |
//! | records appear | when a section ends | as they are made |
//! | owner | the thread that enabled | none: anybody attached may end it |
//! | together with a session of the same thread | Linux 7.2 and later | always |
//!
//! # Marks, not resets
//!
//! The kernel adds to the buffer while you read it: it loads the count, stores records, then stores
//! the new count. If you store a 0 in between, the kernel overwrites it, and the next test case
//! begins with the records of the last one. So do not reset a remote session between cases. Take a
//! [`Mark`] before a case and read the records since; `settle` waits for records to stop. When the
//! buffer fills up, `restart` empties it by disabling and enabling again.
//!
//! A section that ends late, after the next mark, counts for the next case. Only the target knows
//! when its work is done: if possible, wait for that first, and let `settle` do the rest.
//!
//! On another system the first call fails with [`Unsupported`](crate::ErrorKind::Unsupported).
//!
//! [`Device::enable_remote`]: crate::Device::enable_remote
//! [`Device::attach`]: crate::Device::attach
//! [`Attachment::enable`]: netbsd::Attachment::enable

pub mod linux;
pub mod netbsd;
mod session;

pub use session::{Mark, RemoteSession};
