//! Compile-time checks of what may cross threads.

use kcov::mode::{AnyMode, Mode, TraceCmp, TracePc};
use kcov::remote::{Mark, RemoteSession, linux, netbsd};
use kcov::{Builder, ChildBuffer, Device, Error, Modes, Recorded, Session, Trace, Words, fake};
use std::any::Any;
use std::ops::DerefMut;

const fn send_and_sync<T: Send + Sync>() {}

const _: () = {
    send_and_sync::<Builder>();
    send_and_sync::<Device>();
    send_and_sync::<Recorded<TracePc>>();
    send_and_sync::<Recorded<TracePc, &mut Device>>();
    send_and_sync::<Trace<'_, TracePc>>();
    send_and_sync::<Trace<'_, TraceCmp>>();
    send_and_sync::<Trace<'_, AnyMode>>();
    send_and_sync::<Words<'_>>();
    send_and_sync::<ChildBuffer<TracePc>>();
    send_and_sync::<ChildBuffer<TracePc, &mut Device>>();
    send_and_sync::<netbsd::Attachment>();
    send_and_sync::<RemoteSession<TracePc, netbsd::Attachment>>();
    send_and_sync::<RemoteSession<TracePc, &mut netbsd::Attachment>>();
    send_and_sync::<linux::Remote>();
    send_and_sync::<Mark>();
    send_and_sync::<Error>();
    send_and_sync::<Modes>();
    send_and_sync::<fake::Kernel>();
    send_and_sync::<fake::Section>();
};

/// Compiles only if neither blanket implementation below makes the call ambiguous.
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
        <Session<M> as NotSend<_>>::HOLDS
            && <Session<M> as NotSync<_>>::HOLDS
            && <Session<M, &mut Device> as NotSend<_>>::HOLDS
            && <Session<M, &mut Device> as NotSync<_>>::HOLDS
    }
    assert!(check::<TracePc>() && check::<TraceCmp>() && check::<AnyMode>());
    type Remote<D> = RemoteSession<TracePc, D>;
    const {
        assert!(<Remote<Device> as NotSend<_>>::HOLDS && <Remote<Device> as NotSync<_>>::HOLDS);
        type Borrowed = Remote<&'static mut Device>;
        assert!(<Borrowed as NotSend<_>>::HOLDS && <Borrowed as NotSync<_>>::HOLDS);
    };
}

/// Compiles only if the session of a buffer for children gives back nothing that leads to the device:
/// records of another mode would be read in the buffer's mode.
#[test]
fn a_buffer_for_children_keeps_its_device() {
    trait NoDevice<Marker> {
        fn holds(self) -> bool
        where
            Self: Sized,
        {
            true
        }
    }
    impl<T> NoDevice<()> for T {}
    impl<T: DerefMut<Target = Device>> NoDevice<Other> for T {}
    let device = fake::Kernel::linux().builder().open().expect("it opens");
    let mut buffer = device.into_child_buffer(TracePc).expect("it is free");
    let ended = buffer.enable().expect("enabled").disable().expect("disabled");
    assert!(ended.into_owner().holds());
    // The session of a leaked buffer is `'static`, so `Any` could find the device in its owner.
    let buffer = Box::leak(Box::new(buffer));
    let ended = buffer.enable().expect("enabled").disable().expect("disabled");
    let owner: Box<dyn Any> = Box::new(ended.into_owner());
    assert!(!owner.is::<&'static mut Device>());
}

/// One struct can hold a session with its device, or a buffer for children with its device.
#[test]
fn what_owns_its_device_borrows_nothing() {
    const fn is_static<T: 'static>() {}
    is_static::<Session<AnyMode>>();
    is_static::<ChildBuffer<TracePc>>();
    is_static::<RemoteSession<TracePc>>();
    is_static::<RemoteSession<TracePc, netbsd::Attachment>>();
}

#[test]
fn reading_costs_no_more_than_it_must() {
    assert_eq!(size_of::<Session<TracePc, &mut Device>>(), size_of::<usize>());
    assert_eq!(size_of::<Session<TracePc>>(), size_of::<Device>());
    assert_eq!(size_of::<kcov::Pc>(), 8);
    assert_eq!(size_of::<kcov::Comparison>(), 32);
}
