//! Captures the stack of a thread that is stuck in a poll, by a signal.
//!
//! A stack is captured only where the builder requests it, and by the reporter thread. The reporter
//! opens a request (`engine/lease/stack_request.rs`), sends SIGURG to the stuck thread, and waits
//! briefly for the response. The handler records the interrupted address and follows the chain of
//! frame pointers outwards, within the bounds of the thread's stack. The addresses are resolved to
//! names afterwards, by the reporter thread.
//!
//! The signal is SIGURG because it is ignored unless the program has a use for it, debuggers pass
//! it on silently, and a superfluous one does no harm.
//!
//! # Which signals are ours
//! Our signals carry a mark. The handler responds only to these, and does not pass them on. All
//! other signals go to the handler that was installed before, which keeps the mask and the flags
//! that it was installed with. A handler that is installed later takes the place of ours: if it
//! does not pass signals on (most do: signal-hook's, and so Tokio's), there is no response, and
//! reports have no stack. Our handler stays to the end of the process, because a handler that was
//! installed later may have remembered it.
//!
//! # In the handler
//! The handler reads thread-locals that were initialized before, writes into the stack request, and
//! makes one system call; it preserves `errno`. It allocates no memory, takes no locks, and runs no
//! user code but the handler that was installed before.
//!
//! In a shared object (a module of another language's runtime) thread-locals are found by a
//! function of the system's library, which before glibc 2.39 may allocate memory when libraries are
//! loaded meanwhile. If the task was interrupted in the middle of an allocation of its own, its
//! thread hangs. So such programs should not request stacks there.
//!
//! # What is lost
//! A compiler that does not have to keep frame pointers (`-C force-frame-pointers=yes`) uses their
//! register for anything. Then the chain is cut short or leaves frames out; the innermost address
//! is always right. Whatever the register holds, only words of the thread's own stack are read,
//! each farther out than the last. A value that is not an address of code ends the chain.
//!
//! A fiber runs on a stack of its own; the fiber records its bounds. The runtime's frames that
//! called the fiber are not reported.
//!
//! # Rejected
//! - An unwinder in the handler: see `engine/lease/stack_request.rs`.
//! - Copying the stack in the handler and unwinding the copy elsewhere, by the tables that exist
//!   for panics: it would need no frame pointers, but an unwinder of our own for each architecture,
//!   or one more dependency. It may come.
//! - Stopping the thread with `ptrace`: a process may not trace itself.
//!
//! # Checked by
//! tests/preempt/stacks.rs; the exchange of requests and traces by the models of
//! `engine/lease/stack_request.rs`.

use std::{fmt, path::Path};

use super::stall::StallKind;

/// Which stalled threads get a stack trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackCapture {
    Off,
    /// Threads that compute: they are in no system call that a signal would interrupt.
    Computing,
    All,
}

impl StackCapture {
    #[cfg_attr(blitz_loom, allow(dead_code, reason = "models report nothing"))]
    pub(super) fn applies_to(self, kind: StallKind) -> bool {
        match self {
            Self::Off => false,
            Self::Computing => kind == StallKind::Computing,
            Self::All => true,
        }
    }
}

/// One frame of a stuck task's stack, returned by [`StallReport::frames`].
///
/// [`StallReport::frames`]: crate::runtime::StallReport::frames
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use blitz_io::runtime::{Builder, Preemption};
///
/// let (sender, reports) = mpsc::channel();
/// let rt = Builder::new_multi_thread()
///     .preemption(Preemption::new().capture_stacks(true))
///     .on_task_stall(move |stall| drop(sender.send(stall.frames().to_vec())))
///     .build()?;
/// let hog = rt.spawn(async move {
///     loop {
///         if let Ok(frames) = reports.try_recv() {
///             break frames;
///         }
///     }
/// });
/// for frame in rt.block_on(hog)? {
///     println!("  {frame}");
///     assert!(!frame.to_string().is_empty());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackFrame {
    address: usize,
    name: Option<String>,
    file: Option<Box<Path>>,
    line: Option<u32>,
}

impl StackFrame {
    /// Returns the address in the program's code: in the first frame that of the interrupted
    /// instruction, in the others the return address of a call.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(sender.send(stall.frames().to_vec())))
    ///     .build()?;
    /// let hog = rt.spawn(async move {
    ///     loop {
    ///         if let Ok(frames) = reports.try_recv() {
    ///             break frames;
    ///         }
    ///     }
    /// });
    /// for frame in rt.block_on(hog)? {
    ///     assert_ne!(frame.address(), 0);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn address(&self) -> usize {
        self.address
    }

    /// Returns the function's name, if the feature `stall-stacks` is on and the program has
    /// symbols.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(sender.send(stall.frames().to_vec())))
    ///     .build()?;
    /// let hog = rt.spawn(async move {
    ///     loop {
    ///         if let Ok(frames) = reports.try_recv() {
    ///             break frames;
    ///         }
    ///     }
    /// });
    /// for frame in rt.block_on(hog)? {
    ///     assert_ne!(frame.name(), Some(""));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the source file, if the feature `stall-stacks` is on and the program was built with
    /// debug information.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(sender.send(stall.frames().to_vec())))
    ///     .build()?;
    /// let hog = rt.spawn(async move {
    ///     loop {
    ///         if let Ok(frames) = reports.try_recv() {
    ///             break frames;
    ///         }
    ///     }
    /// });
    /// for frame in rt.block_on(hog)? {
    ///     assert!(frame.file().is_none_or(|file| file.file_name().is_some()));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the line in the source file.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(sender.send(stall.frames().to_vec())))
    ///     .build()?;
    /// let hog = rt.spawn(async move {
    ///     loop {
    ///         if let Ok(frames) = reports.try_recv() {
    ///             break frames;
    ///         }
    ///     }
    /// });
    /// for frame in rt.block_on(hog)? {
    ///     assert!(frame.line().is_none() || frame.file().is_some());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// Returns true if the function is neither this crate's nor the standard library's, judged by
    /// its name.
    pub(super) fn is_users(&self) -> bool {
        const OTHERS: [&str; 4] = ["std", "core", "alloc", "blitz_io"];
        let Some(name) = &self.name else { return false };
        // An implementation is named `<type as trait>::function`.
        let name = name.trim_start_matches(['<', '&', '*', '(', '[']);
        // C functions have no path, and primitive types have no crate in front of them.
        let Some((first, _)) = name.split_once("::") else { return false };
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        first.chars().all(is_name) && !OTHERS.contains(&first)
    }
}

/// Prints `app::crunch at src/main.rs:12`, or as much of it as is known.
impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name)?,
            None => write!(f, "{:#x}", self.address)?,
        }
        if let Some(file) = &self.file {
            write!(f, " at {}", file.display())?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(blitz_loom)
))]
pub(super) use self::signal::{frames, install, stack_request};

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(blitz_loom)
))]
#[path = "stack/signal.rs"]
mod signal;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(blitz_loom)
)))]
pub(super) use self::none::{frames, install, stack_request};

/// Stub for systems on which stacks are not captured.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(blitz_loom)
)))]
mod none {
    use super::{super::stall::StalledPoll, StackFrame};
    use crate::engine::lease::stack_request::StackRequest;

    pub(in super::super) fn install() {}

    pub(in super::super) fn stack_request() -> Option<StackRequest> {
        None
    }

    #[cfg_attr(blitz_loom, allow(dead_code, reason = "models report nothing"))]
    pub(in super::super) fn frames(_: &StalledPoll) -> Option<Vec<StackFrame>> {
        None
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{StackCapture, StackFrame, StallKind};

    fn named(name: &str) -> StackFrame {
        StackFrame { address: 0x10, name: Some(name.to_owned()), file: None, line: None }
    }

    #[test]
    fn functions_of_users_are_recognized() {
        for users in
            ["app::crunch", "<app::Hog as core::ops::FnOnce<()>>::call_once", "a::b::{{closure}}"]
        {
            assert!(named(users).is_users(), "{users}");
        }
        for others in [
            "std::thread::sleep",
            "<core::future::Ready<T> as core::future::Future>::poll",
            "<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend",
            "blitz_io::engine::pool::worker::run",
            "clone3",
            "<u64>::wrapping_mul",
            "<T as core::convert::Into<U>>::into",
            "__rust_begin_short_backtrace",
        ] {
            assert!(!named(others).is_users(), "{others}");
        }
        let unknown = StackFrame { name: None, ..named("") };
        assert!(!unknown.is_users());
        assert_eq!(unknown.to_string(), "0x10");
        let known = StackFrame {
            file: Some(std::path::Path::new("a.rs").into()),
            line: Some(7),
            ..named("a::b")
        };
        assert_eq!(known.to_string(), "a::b at a.rs:7");
    }

    #[test]
    fn blocked_threads_are_interrupted_only_on_request() {
        let wanted = |stacks: StackCapture| {
            [StallKind::Computing, StallKind::Blocked, StallKind::Unknown]
                .map(|kind| stacks.applies_to(kind))
        };
        assert_eq!(wanted(StackCapture::Off), [false; 3]);
        assert_eq!(wanted(StackCapture::Computing), [true, false, false]);
        assert_eq!(wanted(StackCapture::All), [true; 3]);
    }
}
