//! Ends a test that hangs, and waits for what must come.

use std::{
    io::Write,
    sync::{
        Condvar, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// A test that takes longer hangs. Picked: a hundred times what the slowest
/// ordinary test takes in a debug build on two busy cores.
const LIMIT: Duration = Duration::from_secs(30);

/// A whole number that multiplies every limit, for machines and tools that are slow:
/// a checker of memory runs a test tens of times slower.
const PATIENCE: &str = "BLITZ_IT_PATIENCE";

/// Lets SIGURG interrupt this process and be forgotten: whoever runs it sends many. The
/// system would not deliver one that nobody handles.
#[cfg(unix)]
const URGE: &str = "BLITZ_IT_URGE";

struct Watched {
    key: u64,
    name: String,
    until: Instant,
}

struct Watchman {
    watched: Mutex<(u64, Vec<Watched>)>,
    changed: Condvar,
}

static WATCHMAN: Watchman =
    Watchman { watched: Mutex::new((0, Vec::new())), changed: Condvar::new() };

/// The test is watched until this is dropped.
#[must_use]
pub(crate) struct Watch(u64);

/// Watches the calling test: past the limit the process is aborted, and its name
/// printed.
pub(crate) fn begin() -> Watch {
    begin_for(LIMIT)
}

/// [`begin`], for a test that is made to take longer.
pub(crate) fn begin_for(limit: Duration) -> Watch {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        #[cfg(unix)]
        if is_urged() {
            let_signals_interrupt();
        }
        static STANDS: AtomicBool = AtomicBool::new(false);
        std::thread::Builder::new()
            .name("watchman".to_owned())
            .spawn(|| {
                STANDS.store(true, Relaxed);
                WATCHMAN.stand();
            })
            .expect("the watchman needs a thread");
        // What a thread takes and gives back while it starts is not the test's.
        until(|| STANDS.load(Relaxed));
    });
    let limit = limit * patience();
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let mut watched = WATCHMAN.lock();
    watched.0 += 1;
    let key = watched.0;
    watched.1.push(Watched { key, name, until: Instant::now() + limit });
    WATCHMAN.changed.notify_one();
    Watch(key)
}

/// Whether signals of others come all the time, and have a handler of this file's.
#[cfg(unix)]
pub(crate) fn is_urged() -> bool {
    std::env::var_os(URGE).is_some()
}

#[cfg(unix)]
fn let_signals_interrupt() {
    extern "C" fn forget(_: libc::c_int) {}
    // SAFETY: plain words, of which zero is one; and a handler that may run anywhere.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = forget as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut()), 0);
    }
}

/// What [`PATIENCE`] says; 1 without it.
fn patience() -> u32 {
    let Some(value) = std::env::var_os(PATIENCE) else { return 1 };
    let number = value.to_str().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    number.unwrap_or_else(|| panic!("{PATIENCE} is {value:?}: make it a whole number above 0"))
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHMAN.lock().1.retain(|watched| watched.key != self.0);
    }
}

impl Watchman {
    fn lock(&self) -> MutexGuard<'_, (u64, Vec<Watched>)> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stand(&self) {
        let mut watched = self.lock();
        loop {
            let now = Instant::now();
            if let Some(late) = watched.1.iter().find(|watched| watched.until <= now) {
                // Not `eprintln`: this thread inherits the capture of the test that
                // was first.
                let text = format!("\n`{}` hangs: it did not end in its time\n", late.name);
                let _ = std::io::stderr().write_all(text.as_bytes());
                std::process::abort();
            }
            let next = watched.1.iter().map(|watched| watched.until - now).min();
            // Without anything to watch there is nothing to wake up for; an hour
            // stands for that.
            let rest = next.unwrap_or(Duration::from_secs(3600));
            let waited = self.changed.wait_timeout(watched, rest);
            watched = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Waits until `fact` holds. It must come to hold by itself; if it never does the
/// watchman ends the test.
pub(crate) fn until(mut fact: impl FnMut() -> bool) {
    while !fact() {
        std::thread::yield_now();
    }
}
