//! Requests without memory: each allocation of each request fails once.

use super::truncate::collects;
use super::*;

/// More allocations than any request makes.
const MOST: u32 = 500;

/// The allocator's own allocations, which may fail unnoticed, lie between those of a request in
/// varying places. So one sweep may miss an allocation.
const SWEEPS: usize = 25;

/// Repeats a request with its first, second, … allocation failing, until the request makes no such
/// allocation. `each` gets the number of the allocation and returns whether it was reached.
fn sweep(mut each: impl FnMut(u32, &mut Faults) -> bool) -> usize {
    let mut faults = Faults::ready();
    (1..MOST).take_while(|&nth| each(nth, &mut faults)).count()
}

/// Sweeps until each allocation has failed. Returns the number of failed allocations.
fn each_allocation(mut each: impl FnMut(u32, &mut Faults) -> bool) -> usize {
    (0..SWEEPS).map(|_| sweep(&mut each)).sum()
}

/// Whether the request failed as the claim says. It may also succeed without the allocation.
#[track_caller]
fn without_memory<T>(cx: &Context, result: &Result<T>) -> bool {
    match result {
        Ok(_) => false,
        Err(errno) if *errno == cx.errno() => true,
        Err(errno) => panic!("refused with {errno}, the claim says {}", cx.errno()),
    }
}

fn works(device: &Device) {
    device.init_trace(page_words()).expect("it can still be sized");
    collects(device, &device.map(page_words()).expect("it can still be mapped"));
}

pub(crate) const CHECKS: &[Check] = &[
    check("faults.open-without-memory", |cx| {
        let mut refused = 0;
        let failed = each_allocation(|nth, faults| {
            let (device, hit) = faults.at(nth, || Device::open(cx.device()));
            refused += u32::from(hit && without_memory(cx, &device));
            assert!(hit || device.is_ok(), "nothing failed, and it was refused");
            works(&open(cx));
            hit
        });
        assert!(refused > 0, "{failed} allocations failed and nobody minded");
    }),
    check("faults.init-trace-without-memory", |cx| {
        let mut refused = 0;
        let failed = each_allocation(|nth, faults| {
            let device = open(cx);
            let (sized, hit) = faults.at(nth, || device.init_trace(4 * page_words()));
            if without_memory(cx, &sized) {
                refused += 1;
                works(&device);
            }
            hit
        });
        assert!(refused > 0, "{failed} allocations failed and nobody minded");
    }),
    check("faults.map-without-memory", |cx| {
        // So large that with pages of 4 KiB the mapping needs page tables of its own.
        let words = 1 << 21;
        let pages = index(words / page_words());
        let mut refused = 0;
        let failed = each_allocation(|nth, faults| {
            let device = sized(cx, words);
            let (map, hit) = faults.at(nth, || device.map(words));
            if let Ok(map) = &map {
                // If a page were missing, this would end the check.
                (0..pages).for_each(|page| assert_eq!(map.load(page * index(page_words())), 0));
            }
            if without_memory(cx, &map) {
                refused += 1;
                collects(&device, &device.map(words).expect("it can still be mapped"));
            }
            hit
        });
        assert!(refused > 0, "{failed} allocations failed and nobody minded");
    }),
    on_buffer("faults.remote-enable-without-memory", mapped_page, |cx, device, map| {
        let handles = (1..9).map(super::remote::usb).collect();
        let remote = Remote { common: super::remote::common(), handles, ..Remote::default() };
        let count = || {
            let mut refused = 0;
            let failed = sweep(|nth, faults| {
                let (enabled, hit) = faults.at(nth, || device.remote_enable(&remote));
                refused += u32::from(without_memory(cx, &enabled));
                match enabled {
                    // The handles registered before the failure are free
                    // again, and so is the thread.
                    Err(_) => assert_eq!(device.disable().err(), Some(Errno(libc::EINVAL))),
                    Ok(()) => device.disable().expect("disabled"),
                }
                hit
            });
            (refused, failed)
        };
        // The structure and each handle need memory. Half of the sweeps see fewer refusals.
        let sweeps: Vec<_> = (0..SWEEPS).map(|_| count()).collect();
        let whole = sweeps.iter().any(|(refused, _)| *refused >= 10);
        assert!(whole, "refusals, of so many failures: {sweeps:?}");
        device.remote_enable(&remote).expect("it can still be enabled");
        device.disable().expect("disabled");
        collects(&device, &map);
    }),
    on_buffer("faults.enable-allocates-nothing", mapped_page, |_, device, map| {
        let mut faults = Faults::ready();
        let (enabled, hit) = faults.at(1, || device.enable(KCOV_TRACE_PC));
        assert!(enabled.is_ok() && !hit, "{enabled:?}");
        let (disabled, hit) = faults.at(1, || device.disable());
        assert!(disabled.is_ok() && !hit, "{disabled:?}");
        collects(&device, &map);
    }),
    slow("faults.nothing-is-lost", 60, |cx| {
        Faults::forget_lost();
        each_allocation(|nth, faults| {
            let (made, first) = faults.at(nth, || {
                let device = Device::open(cx.device())?;
                device.init_trace(4 * page_words())?;
                let map = device.map(4 * page_words())?;
                let remote = Remote::of(super::remote::usb(1));
                device.remote_enable(&remote)?;
                device.disable()?;
                drop(map);
                Ok(())
            });
            let _: Result<()> = made;
            first
        });
        std::thread::sleep(Duration::from_secs(6));
        let lost = Faults::lost();
        assert!(!lost.contains("kcov"), "{lost}");
    }),
];
