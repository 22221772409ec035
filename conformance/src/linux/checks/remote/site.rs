//! Places in the kernel that run sections for the sender of a packet or the owner of a device. Each
//! is used through a virtual device, and recognized by its function and the functions it calls.

use super::*;

/// A buffer into which this process's common handle collects.
struct Collected {
    map: Map,
    symbols: Symbols,
}

impl Collected {
    fn functions(&self, wanted: &str) -> bool {
        let records = self.map.copy(1, index(self.map.count()));
        self.symbols.any_in(wanted, &records)
    }

    #[track_caller]
    fn has(&self, functions: &[&str]) {
        for function in functions {
            let there = || self.functions(function);
            assert!(wait_for(Duration::from_secs(10), there), "nothing of {function}");
        }
    }

    #[track_caller]
    fn lacks(&self, function: &str) {
        let _ = settled(&self.map);
        assert!(!self.functions(function), "something of {function}");
    }
}

/// Runs `stranger` in a process without the handle, and asserts that nothing is collected. Then
/// runs `body`, which has the handle.
fn with_handle(cx: &Context, stranger: impl FnOnce(), body: impl FnOnce(&Collected)) {
    let (device, map) = mapped(cx);
    let go_on = map.words() - 1;
    // Forked before the handle is set, because the child would inherit it.
    let other: Child<()> = Child::start(|| {
        assert!(wait_for(Duration::from_secs(10), || map.load(go_on) == 1), "it is enabled");
        stranger();
    });
    let symbols = symbols();
    device.remote_enable(&Remote::common(common())).expect("enabled");
    map.store(go_on, 1);
    other.end();
    assert_eq!(settled(&map), 0, "without the handle");
    body(&Collected { map, symbols });
}

/// Runs `act` without the handle and with it, which collects these functions and not the other ones.
fn collects(cx: &Context, act: impl Fn(), functions: &[&str], others: &[&str]) {
    with_handle(cx, &act, |collected| {
        act();
        collected.has(functions);
        others.iter().for_each(|other| collected.lacks(other));
    });
}

/// Returns a controller, and a process without the handle that answers for it.
fn answered() -> (Nfc, Child<()>) {
    let nfc = Nfc::new().expect("a controller");
    let answers = Child::start(|| {
        loop {
            nfc.answer();
        }
    });
    (nfc, answers)
}

fn turn_on_and_off(nfc: &Nfc) {
    nfc.up().expect("it is on");
    nfc.down().expect("it is off");
}

/// Sends to a card, first without the handle and then with it.
fn card(cx: &Context, functions: &[&str]) {
    let (nfc, _answers) = answered();
    nfc.up().expect("it is on");
    nfc.poll().expect("it looks for cards");
    nfc.find();
    let mut card = nfc.connect();
    let _ = wait_for(Duration::from_secs(10), || {
        if card.is_err() {
            card = nfc.connect();
        }
        card.is_ok()
    });
    let card = card.expect("a card that was found can be connected to");
    let exchange = || {
        card.send();
        card.receive();
    };
    collects(cx, exchange, functions, &["nci_rx_work"]);
    // The controller cannot be turned off while there is a connection.
    drop(card);
    nfc.down().expect("it is off");
}

fn wireless(cx: &Context, functions: &[&str]) {
    let radio = Radio::new().expect("two radios");
    collects(cx, || radio.send(), functions, &[]);
}

pub(crate) const CHECKS: &[Check] = &[
    slow("remote.site.bluetooth-packets", 30, |cx| {
        let act = || {
            let mut controller = Bluetooth::new().expect("a controller");
            controller.answer();
            controller.answer();
        };
        collects(cx, act, &["hci_rx_work", "hci_event_packet"], &[]);
    }),
    slow("remote.site.nfc-commands", 30, |cx| {
        let (nfc, _answers) = answered();
        let functions = ["nci_send_frame", "virtual_nci_send"];
        collects(cx, || turn_on_and_off(&nfc), &functions, &["nci_rx_work"]);
    }),
    slow("remote.site.nfc-answers", 30, |cx| {
        let (stranger, _answers) = answered();
        let nfc = Nfc::new().expect("a controller");
        let (wait, go_on) = nix::unistd::pipe().expect("a pipe");
        // This child's commands come without the handle, but are answered with it. They
        // are a reset and an initialization, and a reset at the end.
        let commands: Child<()> = Child::start(|| {
            assert_eq!(nix::unistd::read(&wait, &mut [0]), Ok(1));
            turn_on_and_off(&nfc);
        });
        with_handle(
            cx,
            || turn_on_and_off(&stranger),
            |collected| {
                nix::unistd::write(&go_on, &[0]).expect("it goes on");
                (0..3).for_each(|_| nfc.answer());
                commands.end();
                collected.has(&["nci_rx_work", "nci_rsp_packet"]);
                collected.lacks("nci_send_frame");
            },
        );
    }),
    slow("remote.site.nfc-raw-socket", 30, |cx| {
        card(cx, &["rawsock_tx_work", "nfc_data_exchange"]);
    }),
    slow("remote.site.nfc-data", 30, |cx| card(cx, &["nci_tx_work", "virtual_nci_send"])),
    slow("remote.site.wireless-frames", 30, |cx| wireless(cx, &["ieee80211_rx_list"])),
    slow("remote.site.wireless-work", 30, |cx| {
        wireless(cx, &["ieee80211_iface_work", "ieee80211_ibss_rx_queued_mgmt"]);
    }),
    slow("remote.site.usbip-answers", 60, |cx| {
        let act = |port| {
            let mut device = Usbip::attach(port);
            device.refuse().expect("the first request");
            device.refuse().expect("the second request");
        };
        let stranger = || act(0);
        with_handle(cx, stranger, |collected| {
            act(1);
            collected.has(&["vhci_rx_loop"]);
        });
    }),
];
