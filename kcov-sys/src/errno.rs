//! Error numbers of both systems, by the names in claims and messages.
//!
//! They are those of the kernel, not of the host, so every system can read tables about both.
//! Sources: Linux `include/uapi/asm-generic/errno-base.h` and `errno.h` (MIPS has other numbers
//! above 34), NetBSD `sys/sys/errno.h`.

macro_rules! errnos {
    ($($name:ident = $linux:literal, $netbsd:literal;)*) => {
        /// Linux's numbers.
        #[allow(missing_docs, reason = "the names say it")]
        pub mod linux {
            $(pub const $name: i32 = $linux;)*
            /// The names and numbers, with the kernel's own `ENOTSUPP`.
            pub const ALL: &[(&str, i32)] =
                &[$((stringify!($name), $linux),)* ("ENOTSUPP", crate::linux::ENOTSUPP)];
        }

        /// NetBSD's numbers.
        #[allow(missing_docs, reason = "the names say it")]
        pub mod netbsd {
            $(pub const $name: i32 = $netbsd;)*
            /// The names and numbers.
            pub const ALL: &[(&str, i32)] = &[$((stringify!($name), $netbsd),)*];
        }
    };
}

errnos! {
    EPERM = 1, 1;
    ENOENT = 2, 2;
    EIO = 5, 5;
    ENXIO = 6, 6;
    EBADF = 9, 9;
    EAGAIN = 11, 35;
    ENOMEM = 12, 12;
    EACCES = 13, 13;
    EFAULT = 14, 14;
    EBUSY = 16, 16;
    EEXIST = 17, 17;
    ENODEV = 19, 19;
    EINVAL = 22, 22;
    EMFILE = 24, 24;
    ENOTTY = 25, 25;
    ENOSPC = 28, 28;
    ESPIPE = 29, 29;
    ENOSYS = 38, 78;
    EOVERFLOW = 75, 84;
    EOPNOTSUPP = 95, 45;
    ENOBUFS = 105, 55;
}
