//! Measures the cost of kcov in a guest and prints tables: system calls, the length of traces, the
//! size of buffers, resets, remote sections and a whole program. The book's page "Costs" has the
//! commands and explains the columns.

cfg_if::cfg_if! {
    if #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))] {
        mod linux;
        #[path = "../uring/linux.rs"]
        mod uring;
        use linux::measure;
    } else {
        fn measure() -> Result<(), Box<dyn std::error::Error>> {
            Err("this example measures 64-bit Linux".into())
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    measure()
}
