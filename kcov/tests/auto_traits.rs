//! What may cross threads, decided at compile time.

use kcov::mode::{AnyMode, Mode, TraceCmp, TracePc};
use kcov::remote::{linux, netbsd};
use kcov::{Device, Error, ForkServer, Session, Status, Trace};

const fn send_and_sync<T: Send + Sync>() {}

const _: () = {
    send_and_sync::<Device>();
    send_and_sync::<Trace<'_, TracePc>>();
    send_and_sync::<Trace<'_, TraceCmp>>();
    send_and_sync::<Trace<'_, AnyMode>>();
    send_and_sync::<ForkServer<'_, TracePc>>();
    send_and_sync::<netbsd::Attachment<'_>>();
    send_and_sync::<netbsd::RemoteSession<'_, TracePc>>();
    send_and_sync::<Error>();
    send_and_sync::<Status>();
};

/// Holds for a type only if neither blanket implementation below makes the call ambiguous.
trait NotSend<Marker> {
    const HOLDS: bool = true;
}
struct Other;
impl<T: ?Sized> NotSend<()> for T {}
impl<T: ?Sized + Send> NotSend<Other> for T {}

trait NotSync<Marker> {
    const HOLDS: bool = true;
}
impl<T: ?Sized> NotSync<()> for T {}
impl<T: ?Sized + Sync> NotSync<Other> for T {}

#[test]
fn a_session_stays_in_its_thread() {
    fn check<M: Mode>() -> bool {
        <Session<'_, M> as NotSend<_>>::HOLDS && <Session<'_, M> as NotSync<_>>::HOLDS
    }
    assert!(check::<TracePc>() && check::<TraceCmp>() && check::<AnyMode>());
    type Remote = linux::RemoteSession<'static, TracePc>;
    const { assert!(<Remote as NotSend<_>>::HOLDS && <Remote as NotSync<_>>::HOLDS) };
}

#[test]
fn reading_costs_no_more_than_it_must() {
    assert_eq!(size_of::<Session<'_, TracePc>>(), size_of::<usize>());
    assert_eq!(size_of::<kcov::Pc>(), 8);
    assert_eq!(size_of::<kcov::Comparison>(), 32);
}
