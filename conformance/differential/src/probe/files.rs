//! Helpers to observe files, processes and signals.

use std::{
    fmt::Debug,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    time::sleep,
};

use super::{payload, quoted};

/// Builds a runtime with this many workers; for 0 a current-thread runtime.
pub fn runtime(workers: usize) -> Runtime {
    match workers {
        0 => super::current_thread(),
        _ => super::multi_thread(workers),
    }
}

/// Builds a runtime with a single thread for blocking work.
pub fn one_blocking_thread() -> Runtime {
    Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap()
}

/// Occupies the only blocking thread until it is opened or dropped.
pub struct Gate(#[allow(dead_code)] Option<mpsc::Sender<()>>);

impl Gate {
    pub fn close(handle: &Handle) -> Gate {
        let (sender, receiver) = mpsc::channel::<()>();
        handle.spawn_blocking(move || {
            let _ = receiver.recv();
        });
        Gate(Some(sender))
    }

    pub fn open(mut self) {
        self.0.take();
    }
}

/// Returns kind and number of an error.
pub fn error(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("{:?} os {number}", error.kind()),
        None => format!("{:?} no os", error.kind()),
    }
}

/// Prints a value, or kind and number of an error.
pub fn show<T: Debug>(what: &str, result: io::Result<T>) {
    match result {
        Ok(value) => println!("{what}: ok {value:?}"),
        Err(why) => println!("{what}: err {}", error(&why)),
    }
}

/// Prints success, or kind and number of an error. Returns the value.
pub fn ok<T>(what: &str, result: io::Result<T>) -> Option<T> {
    match &result {
        Ok(_) => println!("{what}: ok"),
        Err(why) => println!("{what}: err {}", error(why)),
    }
    result.ok()
}

/// Prints a value, or kind, number and text of an error.
pub fn text<T: Debug>(what: &str, result: io::Result<T>) {
    match result {
        Ok(value) => println!("{what}: ok {value:?}"),
        Err(why) => println!("{what}: err {} {}", error(&why), quoted(&why)),
    }
}

/// Prints the text with which `run` panics, or that it does not. Returns what it returns.
pub fn panics<R>(what: &str, run: impl FnOnce() -> R) -> Option<R> {
    std::panic::set_hook(Box::new(|_| {}));
    let result = catch_unwind(AssertUnwindSafe(run));
    let _ = std::panic::take_hook();
    match result {
        Ok(value) => {
            println!("{what}: no panic");
            Some(value)
        }
        Err(panic) => {
            println!("{what}: panic {}", payload(panic));
            None
        }
    }
}

/// Drops root privileges for the rest of the process, as far as files go. Returns false if that is
/// not possible.
pub fn drop_root() -> bool {
    // SAFETY: the calls take numbers, a static string, and an empty list, for which null is
    // allowed.
    unsafe {
        if libc::geteuid() != 0 {
            return true;
        }
        libc::chmod(c".".as_ptr(), 0o777);
        libc::setgroups(0, std::ptr::null()) == 0
            && libc::setresgid(65534, 65534, 65534) == 0
            && libc::setresuid(65534, 65534, 65534) == 0
    }
}

pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// Blocks the thread until the condition holds, for 2.5 seconds at most.
pub fn until(mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..500 {
        if condition() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Waits until the condition holds, for 2.5 seconds at most.
pub async fn until_async(mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..500 {
        if condition() {
            return true;
        }
        sleep(Duration::from_millis(5)).await;
    }
    false
}

pub fn open_fds() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
