//! Operations that change no word of a program counter buffer.

use crate::check::checks;
use crate::checks::shared::kept;
use crate::raw::KCOV_TRACE_PC;

checks! {
    "pc.kept.by-mapping": by_mapping,
    "pc.kept.by-unmapping": by_unmapping,
    "pc.kept.by-closing-a-duplicate": by_closing_a_duplicate,
    "pc.kept.by-other-devices": by_other_devices,
    "pc.kept.by-enabling-and-disabling": by_enabling_and_disabling,
    "pc.kept.by-the-end-of-the-thread": by_the_end_of_the_thread,
}

kept::of_mode! {
    KCOV_TRACE_PC,
    by_mapping by_unmapping by_closing_a_duplicate by_other_devices by_enabling_and_disabling
    by_the_end_of_the_thread
}
