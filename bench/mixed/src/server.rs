//! The process that is measured: a server, and beside it a thread that sorts.
//!
//! The source is the same for all: `server!` is given a runtime with Tokio's names, and Rayon is
//! the one that the program is linked with. Runtime and pool have their default numbers of threads,
//! as in a program that uses the two. The driver announces by the standard input when a span begins
//! and ends.

use std::io::{BufRead, Write};
use std::sync::{LazyLock, Mutex};
use std::time::Instant;

use harness::measure::{Metric, Of, cpu_ns};
use rayon::prelude::*;

/// The number of bytes of a request and of its reply.
pub(crate) const MESSAGE: usize = 64;

/// The first byte of a request for which a computing server sorts.
pub(crate) const HEAVY: u8 = 1;

/// The number of elements that the background thread sorts at a time.
const BESIDE: usize = 1_000_000;

/// The number of elements that are sorted for a heavy request.
const FOR_A_REQUEST: usize = 100_000;

/// The number of seconds after which the system kills a server that hangs.
const TIME_OUT: libc::c_uint = 120;

/// The kind of server that the command line requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handler {
    /// Replies with what it receives.
    Echo,
    /// Replies with what it receives, and sorts before it replies to a heavy request.
    Computing,
}

/// Returns numbers that are distinct and not in order.
pub(crate) fn scattered(count: usize) -> Vec<u64> {
    (0..count as u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// Does the work of a heavy request, on any thread of the pool; returns the smallest number.
pub(crate) fn sort_for_a_request() -> u64 {
    static NUMBERS: LazyLock<Vec<u64>> = LazyLock::new(|| scattered(FOR_A_REQUEST));
    let mut numbers = NUMBERS.clone();
    numbers.par_sort_unstable();
    numbers[0]
}

/// The start of the background thread, and the ends of its sorts.
static ENDS: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

/// Sorts the same numbers forever, on the global pool.
fn sort_for_ever() {
    let numbers = scattered(BESIDE);
    let mut copy = numbers.clone();
    ENDS.lock().expect("no holder panics").push(Instant::now());
    loop {
        copy.copy_from_slice(&numbers);
        copy.par_sort_unstable();
        assert!(copy[0] <= copy[1] && copy[BESIDE - 2] <= copy[BESIDE - 1], "it is not sorted");
        ENDS.lock().expect("no holder panics").push(Instant::now());
    }
}

/// Returns the sorts per second, of those that ended between `start` and `stop`, in the time that
/// these took: a sort is long, so dividing their count by the span would be imprecise.
fn sorts_per_second(ends: &[Instant], start: Instant, stop: Instant) -> f64 {
    let ended_by = |time| ends.partition_point(|end| *end <= time);
    let (before, all) = (ended_by(start), ended_by(stop));
    match ends.get(before.saturating_sub(1)..all) {
        // The last end before the span is when the first of its sorts began.
        Some(&[first, .., last]) => {
            (all - before.max(1)) as f64 / last.duration_since(first).as_secs_f64()
        }
        _ => 0.0,
    }
}

/// A function that starts a runtime and a server on it, and returns the port.
pub(crate) type Listen = fn(Handler) -> u16;

/// Runs a server on one of the runtimes, as the words of the command line and the lines of the
/// input say. Exits the process.
pub(crate) fn main(words: &[&str], runtimes: &[(&str, Listen)]) -> Result<(), String> {
    let ["--server", runtime, handler, sorts] = words else {
        return Err("this is started by bench/mixed".into());
    };
    let (handler, sorts) = match (*handler, *sorts) {
        ("echo", "quiet") => (Handler::Echo, false),
        ("echo", "sorting") => (Handler::Echo, true),
        ("computing", "quiet") => (Handler::Computing, false),
        _ => return Err(format!("no server is {handler} and {sorts}")),
    };
    let (_, listen) =
        runtimes.iter().find(|it| it.0 == *runtime).ok_or(format!("no runtime {runtime}"))?;
    // SAFETY: the call takes no pointers.
    unsafe { libc::alarm(TIME_OUT) };
    say(&format!("port {}", listen(handler)))?;
    if sorts {
        std::thread::spawn(sort_for_ever);
    }
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    lines.find(|line| line == "start").ok_or("no start was received")?;
    let (start, cpu) = (Instant::now(), cpu_ns(Of::Process));
    lines.find(|line| line == "stop").ok_or("no stop was received")?;
    let (span, cpu) = (start.elapsed(), cpu_ns(Of::Process) - cpu);
    if sorts {
        let ends = ENDS.lock().expect("no holder panics");
        let rate = sorts_per_second(&ends, start, start + span);
        say(&Metric::new("sorts", "/s", rate, None).line())?;
    }
    let cpu_ms = cpu as f64 / 1e6 / span.as_secs_f64();
    say(&Metric::new("cpu", "ms/s", cpu_ms, None).line())?;
    // Connections are still open, and sorts under way, so the process exits without waiting for
    // them.
    std::process::exit(0)
}

/// Prints a line and flushes it, because the output may be a pipe.
fn say(line: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| error.to_string())
}

/// Defines a [`Listen`] function named `listen` for a runtime crate. `computed`, which goes from a
/// task to the pool and back, is defined beside it, by `by_spawn!` or by hand.
#[macro_export]
macro_rules! server {
    ($runtime:ident) => {
        pub(crate) fn listen(handler: $crate::server::Handler) -> u16 {
            use $runtime::io::{AsyncReadExt, AsyncWriteExt};
            use $runtime::net::{TcpListener, TcpStream};

            async fn echo(mut stream: TcpStream) {
                let mut message = [0; $crate::server::MESSAGE];
                // Any error or end of the client ends the connection.
                while stream.read_exact(&mut message).await.is_ok() {
                    if stream.write_all(&message).await.is_err() {
                        return;
                    }
                }
            }

            async fn echo_or_compute(mut stream: TcpStream) {
                let mut message = [0; $crate::server::MESSAGE];
                while stream.read_exact(&mut message).await.is_ok() {
                    if message[0] == $crate::server::HEAVY {
                        assert_eq!(computed().await, 0, "it is not sorted");
                    }
                    if stream.write_all(&message).await.is_err() {
                        return;
                    }
                }
            }

            let runtime = $runtime::runtime::Builder::new_multi_thread().enable_all().build();
            // Leaked, because the process exits without dropping it.
            let runtime = Box::leak(Box::new(runtime.expect("a runtime can be started")));
            let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
            let listener = listener.expect("there is a free port");
            let address = listener.local_addr().expect("it is bound");
            runtime.spawn(async move {
                loop {
                    let (stream, _) = listener.accept().await.expect("a client comes");
                    stream.set_nodelay(true).expect("a tcp option");
                    match handler {
                        $crate::server::Handler::Echo => drop($runtime::spawn(echo(stream))),
                        $crate::server::Handler::Computing => {
                            drop($runtime::spawn(echo_or_compute(stream)));
                        }
                    }
                }
            });
            address.port()
        }
    };
}

/// Defines the way from a task to the pool and back that Rayon alone offers.
#[macro_export]
macro_rules! by_spawn {
    ($runtime:ident) => {
        async fn computed() -> u64 {
            let (sender, receiver) = $runtime::sync::oneshot::channel();
            // The receiver is gone if the connection was closed.
            rayon::spawn(move || _ = sender.send($crate::server::sort_for_a_request()));
            receiver.await.expect("a sort does not panic")
        }
    };
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::sorts_per_second;

    #[test]
    fn a_rate_is_that_of_the_sorts_that_ended_in_the_span() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let ends = [0, 500, 1000, 1100, 1200].map(at);
        assert_eq!(sorts_per_second(&ends, at(10), at(1050)), 2.0);
        assert_eq!(sorts_per_second(&ends, at(1010), at(9000)), 10.0);
        assert_eq!(sorts_per_second(&ends, at(10), at(400)), 0.0);
        assert_eq!(sorts_per_second(&[], at(0), at(100)), 0.0);
    }
}
