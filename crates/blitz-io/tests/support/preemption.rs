//! Creates runtimes that preempt tasks and report stalls, and code that hogs a worker.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
        mpsc,
    },
    thread,
    time::Duration,
};

use blitz_io::runtime::{Builder, Preemption, Runtime, StallReport};

/// Creates a multi-thread runtime with these settings of preemption and without drivers.
pub(crate) fn preempting(workers: usize, preemption: Preemption) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).preemption(preemption).build().expect("a runtime")
}

/// Creates a multi-thread runtime with this slice and all drivers enabled.
pub(crate) fn preempting_with_drivers(workers: usize, slice: Duration) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).preemption(Preemption::new().slice(slice));
    builder.enable_all().build().expect("a runtime")
}

/// Builds a runtime that sends a copy of every stall report.
pub(crate) fn with_reports(builder: &mut Builder) -> (Runtime, mpsc::Receiver<StallReport>) {
    let (sender, reports) = mpsc::channel();
    let sender = Mutex::new(sender);
    let send = move |stall: &StallReport| drop(sender.lock().unwrap().send(stall.clone()));
    (builder.on_task_stall(send).build().expect("a runtime"), reports)
}

/// Ends hogs when it is dropped, also after a test that failed.
pub(crate) struct HogGuard(Arc<HogState>);

/// The state that a [`HogGuard`] shares with its hogs.
#[derive(Default)]
pub(crate) struct HogState {
    over: AtomicBool,
    lock: Mutex<()>,
    ends: Condvar,
}

impl HogState {
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Acquire)
    }
}

impl HogGuard {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Returns the state that the hogs of this guard share.
    pub(crate) fn state(&self) -> Arc<HogState> {
        self.0.clone()
    }

    /// Returns a closure that computes until the guard is dropped.
    pub(crate) fn hog(&self) -> impl FnOnce() + Send + use<> {
        let state = self.0.clone();
        move || {
            while !state.is_over() {
                std::hint::spin_loop();
            }
        }
    }

    /// Returns a closure that sleeps until the guard is dropped, a bit at a time.
    pub(crate) fn sleeper(&self) -> impl FnOnce() + Send + use<> {
        let state = self.0.clone();
        move || {
            while !state.is_over() {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Returns a closure that waits until the guard is dropped, and uses no processor meanwhile.
    pub(crate) fn waiter(&self) -> impl FnOnce() + Send + use<> {
        let state = self.0.clone();
        move || {
            let held = state.lock.lock().unwrap();
            drop(state.ends.wait_while(held, |()| !state.is_over()).unwrap());
        }
    }
}

impl Drop for HogGuard {
    fn drop(&mut self) {
        let held = self.0.lock.lock().unwrap();
        self.0.over.store(true, Release);
        drop(held);
        self.0.ends.notify_all();
    }
}

/// Returns the processor time that this thread has used.
#[cfg(target_os = "linux")]
pub(crate) fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills `time`, which outlives it.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}
