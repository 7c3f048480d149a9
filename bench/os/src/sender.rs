//! Sends signals to this process, one at a time, and measures the latency of each.
//!
//! The sender is a thread that blocks the signal for itself. It sends the next when the last was
//! received and the receiver had time to go to sleep.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use harness::measure::{Metric, percentile};

/// The signal that is sent.
pub(crate) const SIGNAL: i32 = libc::SIGUSR1;

/// The pause between two signals, long enough for every contender to sleep; picked, not measured.
const PAUSE: Duration = Duration::from_micros(200);

/// The least number of samples. A p99 of fewer is one of the three largest.
const LEAST: usize = 300;

/// The receiver's side.
pub(crate) struct Sends {
    received: Sender<Instant>,
    thread: JoinHandle<Vec<f64>>,
}

/// Starts to send; the receiver must be ready.
pub(crate) fn begin(budget: Duration) -> Sends {
    let (received, receive) = channel();
    let thread = thread::spawn(move || {
        block();
        send_all(&receive, budget)
    });
    Sends { received, thread }
}

fn send_all(received: &Receiver<Instant>, budget: Duration) -> Vec<f64> {
    let (start, mut took) = (Instant::now(), Vec::new());
    while took.len() < LEAST || start.elapsed() < budget {
        thread::sleep(PAUSE);
        let sent = Instant::now();
        // SAFETY: the call takes no pointers.
        assert_eq!(unsafe { libc::kill(libc::getpid(), SIGNAL) }, 0, "a signal to ourselves");
        let Ok(at) = received.recv() else { break };
        took.push(at.duration_since(sent).as_nanos() as f64);
    }
    took
}

impl Sends {
    /// Acknowledges a signal; returns `false` when there will be no more.
    pub(crate) fn received(&self) -> bool {
        self.received.send(Instant::now()).is_ok()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Returns median and 99th percentile, in microseconds.
    pub(crate) fn figures(self) -> Vec<Metric> {
        drop(self.received);
        let mut took = self.thread.join().expect("the sender ends");
        let mut at = |name: &str, percent: usize| {
            Metric::new(name, "ns", percentile(&mut took, percent), None).in_us()
        };
        vec![at("p50", 50), at("p99", 99)]
    }
}

/// Blocks the signal on this thread.
pub(crate) fn block() {
    // SAFETY: a set of signals is plain bits, which are initialised before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, SIGNAL);
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()), 0);
    }
}
