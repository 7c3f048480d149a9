//! The asymmetric barrier: one side pays nothing, the rare side pays for both.
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
//! With `membarrier` on Linux `light` is a compiler fence and `heavy` makes the
//! kernel run a full barrier on every core that runs a thread of ours. If B2 is
//! before that barrier in its thread's order, R3 sees B1; if after, B3 sees R1.
//! Elsewhere, where the call is refused (seccomp, old kernels), where the environment
//! variable `BLITZ_BARRIER` is `fences`, and in models both are `fence(SeqCst)`.
//!
//! # Invariants
//! The choice is made once, before the first `light` of the process, and never
//! changes: a light fence paired with a fence that is not heavy would be a bug. A call that is
//! refused later (a sandbox that was entered meanwhile) ends the process, unless whoever asks
//! can do without ([`try_heavy`]).
//!
//! # Checked by
//! `asymmetric_barrier_orders_store_before_load`; weakened as `barrier_light`
//! and `barrier_heavy`.

use std::io::Write;
use std::time::{Duration, Instant};

use super::{OnceLock, Ordering::SeqCst, compiler_fence, fence, weakened};

/// How the process pays for its asymmetric barriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// The kernel interrupts our other threads; the busy side is free.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has it"))]
    Membarrier,
    /// A full fence on both sides.
    Fences,
}

/// `fences` in it does without the system's barrier: for sandboxes that forbid it after a
/// while, for processors that are not to be interrupted, and for tests.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has a choice"))]
#[cfg_attr(blitz_loom, allow(dead_code, reason = "models have none"))]
const VARIABLE: &str = "BLITZ_BARRIER";

static CHOSEN: OnceLock<Mechanism> = OnceLock::new();

/// What was chosen; probes on the first call.
#[inline]
pub(crate) fn mechanism() -> Mechanism {
    *CHOSEN.get_or_init(probe)
}

/// The busy side's barrier.
#[inline(always)]
#[cfg_attr(not(any(test, blitz_variants)), allow(dead_code, reason = "the hand-off's part"))]
pub(crate) fn light() {
    light_as(mechanism() == Mechanism::Fences);
}

/// The same for those who have asked for the mechanism before: whether it is
/// [`Mechanism::Fences`].
#[inline(always)]
pub(crate) fn light_as(fences: bool) {
    if weakened!("barrier_light") {
        return;
    }
    if fences || cfg!(blitz_loom) {
        // SeqCst: pairs with the fence in `heavy`.
        fence(SeqCst);
    } else {
        compiler_fence(SeqCst);
    }
}

/// The rare side's barrier.
pub(crate) fn heavy() {
    if let Err(error) = pass() {
        refused(&error);
    }
}

/// The same for those who can do without: `false` if the system refuses it.
pub(crate) fn try_heavy() -> bool {
    let passed = pass().is_ok();
    if !passed {
        // Relaxed: a mark that orders nothing.
        REFUSED.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    passed
}

/// Whether [`try_heavy`] was refused, ever.
pub(crate) fn was_refused() -> bool {
    // Relaxed: as above.
    REFUSED.load(std::sync::atomic::Ordering::Relaxed)
}

/// Of the process, in models too: nothing hangs on it there.
static REFUSED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

fn pass() -> std::io::Result<()> {
    if weakened!("barrier_heavy") {
        return Ok(());
    }
    // SeqCst: pairs with the fence in `light` where that is one.
    fence(SeqCst);
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    if mechanism() == Mechanism::Membarrier {
        return linux::run();
    }
    Ok(())
}

/// The barrier is needed and not to be had. The busy side relies on it already, so there is
/// nothing to fall back to, and nothing to unwind to: whoever asks may hold a lock, or a frame
/// that others use.
#[cold]
fn refused(error: &std::io::Error) -> ! {
    let _ = writeln!(
        std::io::stderr(),
        "blitz-io: membarrier was granted when the process began and is refused now ({error}); \
         aborting; set {VARIABLE}=fences if a sandbox is to forbid it later"
    );
    std::process::abort();
}

/// The time one `heavy` takes now: the median of some calls.
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

/// What the variable says. One that says something else is told of and not obeyed: this is asked in the
/// middle of other things, where nothing can be refused.
#[cfg(all(target_os = "linux", not(blitz_loom)))]
fn wants_fences(wish: Option<std::ffi::OsString>) -> bool {
    let Some(wish) = wish else { return false };
    match wish.to_str() {
        Some("fences") => return true,
        Some("" | "membarrier") => {}
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "blitz-io: {VARIABLE} is {wish:?} and is ignored: write `fences` or `membarrier`"
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
        let answer = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Tells the kernel that this process will ask for expedited barriers.
    pub(super) fn register() -> io::Result<()> {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    /// A full barrier on every core that runs a thread of this process.
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
                    // Acquire: as the real users of the barrier read; it adds nothing here.
                    words.1.load(Acquire)
                }
            });
            words.1.store(1, Relaxed);
            heavy();
            // Acquire: as above.
            let rare = words.0.load(Acquire);
            let busy = busy.join().unwrap();
            assert!(rare == 1 || busy == 1, "both sides read the old value");
        });
    }
}
