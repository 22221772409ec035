//! What kernels may lack without breaking a promise.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal;)+) => {
        /// A feature that a kernel may lack without breaking a promise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
        pub enum Feature {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl Feature {
            /// All features, in the order of the probes.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant),+];

            /// The word for it in a target's declaration.
            pub fn word(self) -> &'static str {
                match self { $(Feature::$variant => $word,)+ }
            }

            /// Its meaning, in one or two sentences.
            pub fn meaning(self) -> &'static str {
                match self { $(Feature::$variant => concat!($($doc),+).trim_ascii_start(),)+ }
            }
        }
    };
}

features! {
    /// The device exists and can be opened.
    Kcov = "kcov";
    /// Kernel code is instrumented, so the device records it.
    Instrumented = "instrumented";
    /// The kernel can collect comparison operands.
    Comparisons = "comparisons";
    /// In comparison mode the driver checks the count word against the buffer's size. Other kernels
    /// can write outside the buffer, so checks that store a count need this.
    CmpBoundCheck = "cmp-bound-check";
    /// The kernel can collect remote coverage.
    Remote = "remote";
    /// A thread can collect its own and remote coverage at the same time.
    LocalAndRemote = "local-and-remote";
    /// io_uring has kernel threads that are annotated for remote coverage.
    IoUring = "io-uring";
    /// The guest can create a vhost device, and its worker is annotated for remote coverage.
    Vhost = "vhost";
    /// The guest can create a USB bus without hardware, and its hub and devices are annotated for
    /// remote coverage.
    Usb = "usb";
    /// The guest can create a Bluetooth controller without hardware.
    Bluetooth = "bluetooth";
    /// The guest can create an NFC controller without hardware.
    Nfc = "nfc";
    /// The guest has two simulated radios.
    Wireless = "wireless";
    /// The guest has a USB host whose devices are attached over a socket.
    Usbip = "usbip";
    /// `long` has 64 bits in this program, and therefore in ioctl arguments.
    Long64 = "long64";
    /// The kernel's `long`, and so a word of a buffer, has 32 bits.
    Words32 = "words32";
    /// The processor stores the high byte of a number first.
    BigEndian = "big-endian";
    /// A page has 16 KiB.
    Pages16K = "pages-16k";
    /// A page has 64 KiB.
    Pages64K = "pages-64k";
    /// `/proc/kallsyms` shows enough to compute the link-time addresses of kernel code.
    TextAddresses = "text-addresses";
    /// A list of the kernel's calls to the coverage hooks, made from the kernel's file, is
    /// available.
    CallSites = "call-sites";
    /// A kernel module is available, with a list of its calls to the coverage hooks.
    Module = "module";
    /// The kernel keeps freed memory for a while and detects later accesses to it (KASAN).
    Quarantine = "quarantine";
    /// The kernel can make allocations fail and find leaked memory.
    FaultInjection = "fault-injection";
    /// Kernel code runs on two processors at once.
    Smp = "smp";
    /// The kernel tests kcov at boot (`CONFIG_KCOV_SELFTEST`).
    SelfTest = "self-test";
    /// A page fault in the kernel waits until user space provides the page.
    Userfaultfd = "userfaultfd";
    /// Proposed: a mode whose records mark function entries and exits.
    TracePcExt = "trace-pc-ext";
    /// The kernel has the patch for `trace-pc-ext`, built without its option.
    TracePcExtNotBuilt = "trace-pc-ext-not-built";
    /// Proposed: modes that record each program counter, edge or comparison once.
    UniqModes = "uniq-modes";
    /// Proposed: an ioctl that enables with a bitmap, so each program counter is recorded once.
    UniqueEnable = "unique-enable";
    /// The kernel has the patch for `unique-enable`, built without its option.
    UniqueEnableNotBuilt = "unique-enable-not-built";
    /// Proposed: an ioctl that empties the trace.
    ResetTrace = "reset-trace";
    /// The kernel has the interface of NetBSD 9, without remote coverage.
    NetBsd9 = "netbsd-9";
    /// The kernel has the interface of NetBSD 10: a device can be attached to a source.
    NetBsd10 = "netbsd-10";
    /// NetBSD's virtual USB host controllers exist. They are the only source of remote coverage.
    Vhci = "vhci";
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
