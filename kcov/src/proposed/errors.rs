//! Errors of the proposals' requests, beside those of Linux.

use crate::error::linux::{EBUSY, EINVAL, ENOTSUPP, ENOTTY, EOPNOTSUPP};
use crate::error::{Row, rows};

pub(crate) const ERRORS: &[Row] = &rows![
    Enable, EOPNOTSUPP => ModeNotBuiltIn:
        "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y",
        "kcov_get_mode, KCOV_TRACE_UNIQ_CMP, proposed";
    EnableUnique, EINVAL => AlreadyEnabled:
        "this device is already enabled: disable it first",
        "KCOV_UNIQUE_ENABLE, proposed, mode not KCOV_MODE_INIT";
    EnableUnique, EBUSY => AlreadyEnabled:
        "this thread is traced through another descriptor: disable that one first, or enable this \
         one in another thread",
        "KCOV_UNIQUE_ENABLE, proposed, t->kcov";
    EnableUnique, ENOTSUPP => ModeNotBuiltIn:
        "build the kernel with CONFIG_KCOV_UNIQUE=y",
        "KCOV_UNIQUE_ENABLE, proposed, ENOTSUPP";
    EnableUnique, ENOTTY => Unsupported:
        "use a mode that this kernel supports",
        "kcov_ioctl_locked, request unknown";
    ResetTrace, EINVAL => NotEnabled:
        "reset on the thread that enabled",
        "KCOV_RESET_TRACE, proposed";
];
