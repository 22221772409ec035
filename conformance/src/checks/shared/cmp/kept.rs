//! Operations that change no word of a comparison buffer.

use crate::check::checks;
use crate::checks::shared::kept;
use crate::raw::KCOV_TRACE_CMP;

checks! {
    "cmp.kept.by-mapping": by_mapping,
    "cmp.kept.by-unmapping": by_unmapping,
    "cmp.kept.by-closing-a-duplicate": by_closing_a_duplicate,
    "cmp.kept.by-other-devices": by_other_devices,
    "cmp.kept.by-enabling-and-disabling": by_enabling_and_disabling,
    "cmp.kept.by-the-end-of-the-thread": by_the_end_of_the_thread,
}

kept::of_mode! {
    KCOV_TRACE_CMP,
    by_mapping by_unmapping by_closing_a_duplicate by_other_devices by_enabling_and_disabling
    by_the_end_of_the_thread
}
