//! Operations that change no word of a comparison buffer.

use crate::check::checks;
use crate::checks::shared::kept;
use crate::raw::KCOV_TRACE_CMP;

checks! {
    by_mapping needs(Comparisons),
    by_unmapping needs(Comparisons),
    by_closing_a_duplicate needs(Comparisons),
    by_other_devices needs(Comparisons),
    by_enabling_and_disabling needs(Comparisons),
    by_the_end_of_the_thread needs(Comparisons),
}

kept::of_mode! {
    KCOV_TRACE_CMP,
    by_mapping by_unmapping by_closing_a_duplicate by_other_devices by_enabling_and_disabling
    by_the_end_of_the_thread
}
