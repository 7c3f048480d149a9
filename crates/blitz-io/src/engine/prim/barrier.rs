//! Asymmetric memory barrier: the frequent side pays nothing, the rare side pays for both.
//!
//! # Protocol
//! Two threads that each write one word and then read the other's need a full
//! barrier on both sides, or both may read the old value:
//!
//! ```text
//! the busy side        the rare side
//! B1 writes x          R1 writes y
//! B2 light()           R2 heavy()
//! B3 reads y           R3 reads x
//! ```
//!
//! With `membarrier` on Linux `light` is a compiler fence, and `heavy` makes the kernel run a
//! full barrier on every processor that runs a thread of this process. If B2 comes before that
//! barrier in its thread's order, R3 sees B1; if after, B3 sees R1. Both are `fence(SeqCst)` on
//! other systems, where the call is refused (seccomp, old kernels), where the environment
//! variable `BLITZ_BARRIER` is `fences`, and in models.
//!
//! # Invariants
//! The choice is made once, before the first `light` of the process, and never changes, because a
//! light fence paired with a fence that is not heavy would order nothing. If the kernel refuses
//! the call later (because the process has entered a sandbox meanwhile), the process aborts,
//! unless the caller can do without the barrier ([`try_heavy`]).
//!
//! # Checked by
//! `asymmetric_barrier_orders_store_before_load`; weakened as `barrier_light`
//! and `barrier_heavy`.

use std::io::Write;
use std::time::{Duration, Instant};

use super::{OnceLock, Ordering::SeqCst, compiler_fence, fence, weakened};

/// The mechanism behind the asymmetric barriers of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// The `membarrier` system call: the kernel interrupts our other threads, and the busy side
    /// is free.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has it"))]
    Membarrier,
    /// A full fence on both sides.
    Fences,
}

/// Environment variable that selects the mechanism. The value `fences` avoids the system call:
/// for sandboxes that forbid it later on, for processors that must not be interrupted, and for
/// tests.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has a choice"))]
#[cfg_attr(blitz_loom, allow(dead_code, reason = "models have none"))]
const VARIABLE: &str = "BLITZ_BARRIER";

static CHOSEN: OnceLock<Mechanism> = OnceLock::new();

/// Returns the mechanism of this process. The first call probes the system.
#[inline]
pub(crate) fn mechanism() -> Mechanism {
    *CHOSEN.get_or_init(probe)
}

/// Runs the busy side's barrier (B2).
#[inline(always)]
#[cfg_attr(not(test), allow(dead_code, reason = "the hand-off's part"))]
pub(crate) fn light() {
    light_as(mechanism() == Mechanism::Fences);
}

/// Runs the busy side's barrier for callers that have stored the mechanism: `fences` is true if
/// it is [`Mechanism::Fences`].
#[inline(always)]
pub(crate) fn light_as(fences: bool) {
    if weakened!("barrier_light") {
        return;
    }
    if fences || cfg!(blitz_loom) {
        // SeqCst: pairs with the fence in `run_heavy`, which `heavy` runs.
        fence(SeqCst);
    } else {
        compiler_fence(SeqCst);
    }
}

/// Runs the rare side's barrier (R2). Aborts the process if the system refuses it.
pub(crate) fn heavy() {
    if let Err(error) = run_heavy() {
        refused(&error);
    }
}

/// Runs the rare side's barrier for callers that can do without it. Returns `false` if the system
/// refuses it.
pub(crate) fn try_heavy() -> bool {
    let passed = run_heavy().is_ok();
    if !passed {
        // Relaxed: a flag that orders nothing.
        REFUSED.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    passed
}

/// Returns true if the system has ever refused a [`try_heavy`].
pub(crate) fn was_refused() -> bool {
    // Relaxed: a flag that orders nothing.
    REFUSED.load(std::sync::atomic::Ordering::Relaxed)
}

/// Set once a [`try_heavy`] was refused. One flag per process, in models too, because no model
/// depends on it.
static REFUSED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

fn run_heavy() -> std::io::Result<()> {
    if weakened!("barrier_heavy") {
        return Ok(());
    }
    // SeqCst: pairs with the fence in `light_as` where that is a fence.
    fence(SeqCst);
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    if mechanism() == Mechanism::Membarrier {
        return linux::run();
    }
    Ok(())
}

/// Aborts because a needed barrier was refused. The busy side relies on the barrier already, so
/// there is no fallback. Unwinding is no way out either, because the caller may hold a lock, or a
/// stack frame that other threads use.
#[cold]
fn refused(error: &std::io::Error) -> ! {
    let _ = writeln!(
        std::io::stderr(),
        "blitz-io: membarrier was granted when the process began and is refused now ({error}); \
         aborting; set {VARIABLE}=fences if a sandbox is to forbid it later"
    );
    std::process::abort();
}

/// Measures the time that one `heavy` takes now, as the median of 31 calls.
pub(crate) fn heavy_cost() -> Duration {
    let mut costs = [Duration::ZERO; 31];
    for cost in &mut costs {
        let start = Instant::now();
        heavy();
        *cost = start.elapsed();
    }
    costs.sort_unstable();
    costs[costs.len() / 2]
}

#[cold]
fn probe() -> Mechanism {
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    if !wants_fences(std::env::var_os(VARIABLE))
        && linux::register().is_ok()
        && linux::run().is_ok()
    {
        return Mechanism::Membarrier;
    }
    Mechanism::Fences
}

/// Returns true if the variable selects fences. An unknown value is reported and ignored, because
/// this runs in the middle of other operations, where no error can be returned.
#[cfg(all(target_os = "linux", not(blitz_loom)))]
fn wants_fences(value: Option<std::ffi::OsString>) -> bool {
    let Some(value) = value else { return false };
    match value.to_str() {
        Some("fences") => return true,
        Some("" | "membarrier") => {}
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "blitz-io: {VARIABLE} is {value:?} and is ignored: write `fences` or `membarrier`"
            );
        }
    }
    false
}

#[cfg(all(target_os = "linux", not(blitz_loom)))]
mod linux {
    use std::io;

    fn membarrier(command: libc::c_int) -> io::Result<()> {
        // SAFETY: membarrier takes three integers and touches no memory of ours.
        let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Registers this process with the kernel for expedited barriers.
    pub(super) fn register() -> io::Result<()> {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    /// Runs a full barrier on every processor that runs a thread of this process.
    pub(super) fn run() -> io::Result<()> {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::prim::{
        Arc, AtomicUsize,
        Ordering::{Acquire, Relaxed},
        barrier::{heavy, light},
        model, thread,
    };

    #[test]
    fn asymmetric_barrier_orders_store_before_load() {
        model(|| {
            let words = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            let busy = thread::spawn({
                let words = words.clone();
                move || {
                    words.0.store(1, Relaxed);
                    light();
                    // Acquire: the real users of the barrier load so; it adds nothing here.
                    words.1.load(Acquire)
                }
            });
            words.1.store(1, Relaxed);
            heavy();
            // Acquire: the real users of the barrier load so; it adds nothing here.
            let rare = words.0.load(Acquire);
            let busy = busy.join().unwrap();
            assert!(rare == 1 || busy == 1, "both sides read the old value");
        });
    }
}
