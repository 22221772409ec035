//! Records kernel traces of several kinds of work, for the benchmarks of `kcov-signal`.
//!
//! In a guest it prints the traces; on the host it stores them:
//!
//! ```sh
//! RUSTFLAGS='-C target-feature=+crt-static' cargo build -p kcov --example record \
//!     --profile guest --target x86_64-unknown-linux-gnu
//! cargo vm exec linux-uml -- target/x86_64-unknown-linux-gnu/guest/examples/record |
//!     cargo run -p kcov --example record -- store kcov/signal/benches/traces
//! ```
use kcov::{BufferSize, Device, mode::TracePc};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, error::Error, fmt::Write as _, thread};

mod uring;

/// One step of a kind of work. The number makes each step different.
type Work = fn(&Path, u64) -> io::Result<()>;

const KINDS: &[(&str, u64, Work)] = &[
    ("files", 64 << 10, files),
    ("io-uring", 64 << 10, uring::work),
    ("sockets", 64 << 10, sockets),
    ("processes", 64 << 10, processes),
    ("mixed", 512 << 10, mixed),
];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => record(),
        ["store", directory] => store(Path::new(directory)),
        // The child process of `processes`.
        ["nothing"] => Ok(()),
        _ => Err("usage: record [store DIRECTORY]".into()),
    }
}

fn record() -> Result<(), Box<dyn Error>> {
    let directory = env::temp_dir().join("record");
    fs::create_dir_all(&directory)?;
    for &(name, pcs, work) in KINDS {
        let mut device = Device::builder().size(BufferSize::words(pcs)).open()?;
        let session = device.enable(TracePc)?;
        let mut step = 0;
        while !session.trace().is_truncated() {
            work(&directory, step)?;
            step += 1;
        }
        let trace: Vec<u64> = session.disable()?.trace().iter().map(kcov::Pc::address).collect();
        let packed = pack(&trace);
        let mut line = format!("trace {name} ");
        packed.iter().for_each(|byte| write!(line, "{byte:02x}").expect("memory"));
        println!("{line}");
        eprintln!("{name}: {} PCs in {step} steps, {} bytes", trace.len(), packed.len());
    }
    Ok(())
}

/// Packs the differences between PCs: zigzag, LEB128, deflate.
fn pack(trace: &[u64]) -> Vec<u8> {
    let (mut bytes, mut previous) = (Vec::new(), 0);
    for &pc in trace {
        let step = pc.wrapping_sub(previous) as i64;
        let mut left = (step << 1 ^ step >> 63) as u64;
        while left >= 0x80 {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
        previous = pc;
    }
    miniz_oxide::deflate::compress_to_vec(&bytes, 10)
}

fn store(directory: &Path) -> Result<(), Box<dyn Error>> {
    for line in io::stdin().lines() {
        let line = line?;
        let Some((name, hex)) = line.strip_prefix("trace ").and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        let bytes: Result<Vec<u8>, _> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16)).collect();
        fs::write(directory.join(name), bytes?)?;
    }
    Ok(())
}

fn files(directory: &Path, step: u64) -> io::Result<()> {
    let sub = directory.join(format!("d{}", step % 7));
    fs::create_dir_all(&sub)?;
    let path: PathBuf = sub.join(format!("file-{step}"));
    let mut file = File::create(&path)?;
    file.write_all(&vec![step as u8; (step as usize * 977) % 20000])?;
    file.set_len(step * 333 % 9000)?;
    file.seek(io::SeekFrom::Start(step % 100))?;
    file.sync_all()?;
    drop(file);
    let mut content = Vec::new();
    File::open(&path)?.read_to_end(&mut content)?;
    let other = sub.join("other");
    fs::rename(&path, &other)?;
    fs::hard_link(&other, &path)?;
    fs::metadata(&path)?;
    fs::read_dir(&sub)?.for_each(|entry| drop(entry.map(|entry| entry.metadata())));
    let _ = fs::read_link("/proc/self/exe");
    let _ = fs::read("/proc/self/status");
    if step % 3 == 0 {
        fs::remove_file(&path)?;
    }
    fs::remove_file(&other)
}

fn sockets(directory: &Path, step: u64) -> io::Result<()> {
    let (mut one, mut other) = UnixStream::pair()?;
    one.write_all(&vec![1; (step as usize * 531) % 5000])?;
    other.set_nonblocking(true)?;
    let mut buffer = [0; 700];
    while other.read(&mut buffer).is_ok_and(|count| count > 0) {}
    one.shutdown(std::net::Shutdown::Write)?;
    let path = directory.join("socket");
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    let client = UnixStream::connect(&path)?;
    let (server, _) = listener.accept()?;
    (&server).write_all(b"hello")?;
    (&client).read_exact(&mut [0; 5])?;
    drop(client);
    let _ = (&server).read(&mut buffer)?;
    let (one, other) = UnixDatagram::pair()?;
    for size in 0..step % 5 {
        one.send(&buffer[..size as usize * 100])?;
        other.recv(&mut buffer)?;
    }
    // Whether there is a network depends on the kernel; a refusal is also a path.
    if let Ok(socket) = std::net::UdpSocket::bind("127.0.0.1:0") {
        let address = socket.local_addr()?;
        let _ = socket.send_to(&buffer[..step as usize % 700], address);
        socket.set_nonblocking(true)?;
        let _ = socket.recv_from(&mut buffer);
    }
    let _ = std::net::TcpStream::connect("127.0.0.1:9");
    Ok(())
}

fn processes(_: &Path, step: u64) -> io::Result<()> {
    if step % 4 == 0 {
        Command::new(env::current_exe()?).arg("nothing").env("STEP", step.to_string()).status()?;
    }
    thread::spawn(move || vec![step as u8; (step as usize * 7919) % 300_000].len())
        .join()
        .expect("a sum");
    let _ = Command::new("/no/such/program").status();
    Ok(())
}

fn mixed(directory: &Path, step: u64) -> io::Result<()> {
    [files, sockets, processes, uring::work][step as usize % 4](directory, step)?;
    for name in ["/proc/self/maps", "/proc/meminfo", "/proc/self/mountinfo", "/proc/uptime"] {
        let _ = fs::read(name);
    }
    Ok(())
}
