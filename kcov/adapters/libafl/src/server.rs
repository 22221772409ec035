//! A server: a process that forks children in place of the fuzzer. fork(2) copies the page tables of
//! the parent, which then copies each page that it writes. A fuzzer has many pages, the server few.

use crate::fork::{Ended, Fork, Spawn, reap};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::Pid;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Inputs are unlikely to name descriptors from here on.
const HIGH: i32 = 200;

/// What a child records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Records {
    Pcs,
    Comparisons,
}

/// The server, as the fuzzer sees it. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Server {
    pid: Pid,
    /// `None` only while it is dropped.
    stream: Option<UnixStream>,
    request: Vec<u8>,
}

impl Server {
    /// Forks the server. It decodes each input and forks a child, which runs `child` with the input.
    pub(crate) fn start<I>(
        mut fork: Fork,
        decode: impl Fn(&[u8]) -> Option<I>,
        mut child: impl FnMut(Records, &I),
    ) -> io::Result<Server> {
        let (here, there) = UnixStream::pair()?;
        let (mut here, mut there) = (Some(high(here)?), Some(high(there)?));
        let pid = fork.clone().process(|| {
            drop(here.take());
            // Whatever the error, the fuzzer sees the end of the stream.
            let _ = serve(&mut fork, &mut there, decode, &mut child);
        })?;
        Ok(Server { pid, stream: here, request: Vec::new() })
    }

    /// Has the server fork a child, which runs for `limit` at most. Returns `None` if the server is
    /// gone: a child can kill it, and may outlive it.
    pub(crate) fn spawn(
        &mut self,
        limit: Duration,
        records: Records,
        input: &[u8],
    ) -> io::Result<Option<Ended>> {
        let Server { stream: Some(stream), request, .. } = self else { return Ok(None) };
        request.clear();
        // A longer limit is centuries.
        request.extend(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).to_ne_bytes());
        request.extend((records as u64).to_ne_bytes());
        request.extend((input.len() as u64).to_ne_bytes());
        request.extend(input);
        let mut reply = [0];
        if stream.write_all(request).and_then(|()| stream.read_exact(&mut reply)).is_err() {
            return Ok(None);
        }
        match reply {
            [b'e'] => Ok(Some(Ended::Exited)),
            [b's'] => Ok(Some(Ended::Signaled)),
            [b't'] => Ok(Some(Ended::TimedOut)),
            _ => {
                let mut why = String::new();
                stream.read_to_string(&mut why)?;
                Err(io::Error::other(why))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server exits at the end of the stream. Another server, forked later, has the stream too,
        // so closing it here is not its end.
        if let Some(stream) = self.stream.take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = reap(self.pid);
    }
}

/// Moves a stream to a high descriptor.
fn high(stream: UnixStream) -> io::Result<UnixStream> {
    Ok(fcntl_dupfd_cloexec(stream, HIGH)?.into())
}

/// The server's loop: forks a child for each request, until the stream ends or a child cannot be run.
/// Each child closes the stream first. A child neither allocates nor frees before its harness runs: each
/// page that it writes to costs a page fault.
fn serve<I>(
    fork: &mut Fork,
    stream: &mut Option<UnixStream>,
    decode: impl Fn(&[u8]) -> Option<I>,
    child: &mut impl FnMut(Records, &I),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while let Some(requests) = stream {
        let mut words = [[0; 8]; 3];
        requests.read_exact(words.as_flattened_mut())?;
        let [limit, records, length] = words.map(u64::from_ne_bytes);
        let records = if records == 0 { Records::Pcs } else { Records::Comparisons };
        bytes.resize(usize::try_from(length).unwrap_or_default(), 0);
        requests.read_exact(&mut bytes)?;
        let input = decode(&bytes);
        let ended = fork.spawn(Duration::from_nanos(limit), || {
            drop(stream.take());
            input.iter().for_each(|input| child(records, input));
        });
        let Some(replies) = stream else { break };
        match ended {
            Ok(Ended::Exited) => replies.write_all(b"e")?,
            Ok(Ended::Signaled) => replies.write_all(b"s")?,
            Ok(Ended::TimedOut) => replies.write_all(b"t")?,
            Err(why) => return replies.write_all(format!("!{why}").as_bytes()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second server is a fork of a process that has the stream of the first.
    #[test]
    fn servers_end_in_any_order() {
        // SAFETY: the servers allocate nothing but a request, which they never get.
        let start =
            || Server::start(unsafe { Fork::new() }, |_| Some(()), |_, _| {}).expect("a server");
        let (first, second) = (start(), start());
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(first);
            let _ = done.send(());
        });
        let ended = ended.recv_timeout(Duration::from_secs(20));
        // A second server that lives keeps the first, and the thread, waiting.
        drop(second);
        assert!(ended.is_ok(), "the first server does not end");
    }
}
