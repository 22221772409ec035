//! Compares `kcov_sys::linux` with the machine's own `<linux/kcov.h>`. A C compiler checks one
//! static assertion for each definition, in the generic encoding and in that of MIPS and PowerPC.
//! On x86, whose compilers support both, it checks a 64-bit and a 32-bit `long`.
#![cfg(target_os = "linux")]

mod c;

use kcov_sys::ioc::Encoding;
use kcov_sys::linux::*;

const X86: bool = cfg!(any(target_arch = "x86", target_arch = "x86_64"));

/// The sizes of `long` that the compiler supports.
const LONG_BYTES: &[usize] = if X86 { &[8, 4] } else { &[size_of::<usize>()] };

/// Compiles the assertions. `Err` has the compiler's messages.
fn compile(long_bytes: usize, before: &str, assertions: &[(String, u64)]) -> Result<(), String> {
    // <linux/kcov.h> uses _IO without including its header.
    let headers = ["errno", "ioctl", "kcov"].map(|name| format!("#include <linux/{name}.h>\n"));
    let mut text = format!("{before}\n{}", headers.concat());
    text.extend(assertions.iter().map(|(expression, value)| c::assertion(expression, *value)));
    // Debian's directory of <asm/types.h>; -m32 would search another one.
    let include = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let machine = format!("-m{}", long_bytes * 8);
    let flags: &[&str] = if X86 { &[&include, &machine] } else { &[] };
    c::compile(flags, &text)
}

/// Every definition of the header that has a value, and this crate's value.
fn definitions(encoding: Encoding, long_bytes: usize) -> Vec<(String, u64)> {
    let requests = Requests::new(encoding, long_bytes);
    let handle = |subsys, inst| kcov_remote_handle(subsys, inst);
    let mut all: Vec<(String, u64)> = [
        ("sizeof(struct kcov_remote_arg)", size_of::<kcov_remote_arg>() as u64),
        ("_Alignof(struct kcov_remote_arg)", align_of::<kcov_remote_arg>() as u64),
        ("KCOV_REMOTE_MAX_HANDLES", KCOV_REMOTE_MAX_HANDLES.into()),
        ("KCOV_INIT_TRACE", requests.init_trace.into()),
        ("KCOV_ENABLE", requests.enable.into()),
        ("KCOV_DISABLE", requests.disable.into()),
        ("KCOV_REMOTE_ENABLE", requests.remote_enable.into()),
        ("KCOV_TRACE_PC", KCOV_TRACE_PC.into()),
        ("KCOV_TRACE_CMP", KCOV_TRACE_CMP.into()),
        ("KCOV_CMP_CONST", KCOV_CMP_CONST),
        ("KCOV_CMP_MASK", KCOV_CMP_MASK),
        ("KCOV_SUBSYSTEM_COMMON", KCOV_SUBSYSTEM_COMMON),
        ("KCOV_SUBSYSTEM_USB", KCOV_SUBSYSTEM_USB),
        ("KCOV_SUBSYSTEM_MASK", KCOV_SUBSYSTEM_MASK),
        ("KCOV_INSTANCE_MASK", KCOV_INSTANCE_MASK),
        // kcov_remote_handle() is an inline function and no constant expression, so use its
        // formula.
        ("KCOV_SUBSYSTEM_USB | 3", handle(KCOV_SUBSYSTEM_USB, 3)),
        ("__INT_MAX__ / sizeof(unsigned long)", kcov_init_trace_max(long_bytes as u64)),
    ]
    .map(|(expression, value)| (expression.to_owned(), value))
    .into();
    // <linux/errno.h> of user space lacks the kernel's own numbers.
    let errnos = kcov_sys::errno::linux::ALL.iter().filter(|errno| errno.1 != ENOTSUPP);
    all.extend(errnos.map(|&(name, number)| (name.to_owned(), number as u64)));
    for n in 0..4 {
        all.push((format!("KCOV_CMP_SIZE({n})"), kcov_cmp_size(n)));
    }
    macro_rules! fields {
        ($($field:ident),*) => {$(
            all.push((
                concat!("__builtin_offsetof(struct kcov_remote_arg, ", stringify!($field), ")").into(),
                std::mem::offset_of!(kcov_remote_arg, $field) as u64,
            ));
        )*};
    }
    fields!(trace_mode, area_size, num_handles, common_handle, handles);
    all
}

/// The definitions of MIPS and PowerPC before they include the generic header.
const MIPS_POWERPC: &str = "#define _IOC_SIZEBITS 13\n#define _IOC_DIRBITS 3\n\
    #define _IOC_NONE 1U\n#define _IOC_READ 2U\n#define _IOC_WRITE 4U";

#[test]
fn generic_encoding() {
    for &long_bytes in LONG_BYTES {
        compile(long_bytes, "", &definitions(Encoding::LINUX_GENERIC, long_bytes)).unwrap();
    }
}

#[test]
fn mips_powerpc_encoding() {
    for &long_bytes in LONG_BYTES {
        let definitions = definitions(Encoding::LINUX_MIPS_POWERPC, long_bytes);
        compile(long_bytes, MIPS_POWERPC, &definitions).unwrap();
    }
}

#[test]
fn native_constants() {
    let native = [
        ("KCOV_INIT_TRACE", KCOV_INIT_TRACE),
        ("KCOV_ENABLE", KCOV_ENABLE),
        ("KCOV_DISABLE", KCOV_DISABLE),
        ("KCOV_REMOTE_ENABLE", KCOV_REMOTE_ENABLE),
    ]
    .map(|(name, value)| (name.to_owned(), value.into()));
    compile(size_of::<usize>(), "", &native).unwrap();
    assert_eq!(KCOV_INIT_TRACE64, Requests::new(Encoding::LINUX_NATIVE, 8).init_trace);
    assert_eq!(KCOV_INIT_TRACE32, Requests::new(Encoding::LINUX_NATIVE, 4).init_trace);
}

#[test]
fn every_wrong_value_is_noticed() {
    let long_bytes = size_of::<usize>();
    for (expression, value) in definitions(Encoding::LINUX_GENERIC, long_bytes) {
        let error = compile(long_bytes, "", &[(expression.clone(), value ^ 1)]).unwrap_err();
        assert!(error.contains("static assertion failed"), "{expression}: {error}");
    }
}
