//! Where a thread is that is stuck in a poll: its stack, by a signal.
//!
//! Only where the builder asks for it, and there by the thread that tells reports. It asks
//! (`work/inquiry`), sends SIGURG to the stuck thread, and waits for an answer, not for long.
//! The handler notes the address that it has interrupted and follows the chain of frame
//! pointers outwards, within the bounds of the thread's stack. What the addresses are called
//! is found out afterwards, by the thread that tells.
//!
//! SIGURG, because it is ignored unless somebody has a use for it, debuggers pass it on without
//! a word, and one too many does no harm.
//!
//! # Whose signal it is
//! Ours carry a mark; only they are answered, and they are not passed on. All others go to the
//! handler that was there before, which keeps the mask and the flags that it was installed
//! with. A handler that comes later takes the place of this one: if it does not pass signals on
//! (most do: signal-hook's and so Tokio's), nobody answers, and reports go without. The handler
//! stays to the end of the process: who came later may have remembered it.
//!
//! # In the handler
//! It reads words of the thread's own that were there before, writes into the inquiry, and
//! makes one system call; it keeps `errno`. No memory, no locks, no code of users but the
//! handler that was there.
//!
//! In a shared object (a module of another language's runtime) the words of a thread are found by
//! a function of the system's library, which before glibc 2.39 may take memory when libraries are
//! loaded meanwhile. If the task was interrupted in the middle of taking memory itself, its thread
//! hangs. So such programs had better not ask for stacks there.
//!
//! # What is lost
//! A compiler that is not asked for frame pointers (`-C force-frame-pointers=yes`) uses their
//! register for anything. Then the chain is cut, or leaves frames out; the innermost address
//! is always right. Whatever the register holds, only words of the thread's own stack are read,
//! and each one farther out than the last. What is no address of code ends the chain.
//!
//! A fiber's stack is not the thread's; the fiber says where it is. What called the fiber is the
//! runtime, and not told.
//!
//! # Rejected
//! - An unwinder in the handler: see `work/inquiry`.
//! - To copy the stack in the handler and unwind the copy elsewhere, by the tables that are
//!   there for panics: no frame pointers are needed. An unwinder of our own for each
//!   architecture, or a dependency more. It may come.
//! - To stop the thread with `ptrace`: a process may not trace itself.
//!
//! # Checked by
//! tests/preempt/stacks.rs; the words by the models of `work/inquiry`.

use std::{fmt, path::Path};

use super::stall::Kind;

/// Of which threads the stack is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stacks {
    Nobodys,
    /// Of those who compute: they are in no system call that a signal would end.
    Computing,
    Everybodys,
}

impl Stacks {
    #[cfg_attr(blitz_loom, allow(dead_code, reason = "models tell nobody"))]
    pub(super) fn are_wanted_of(self, kind: Kind) -> bool {
        match self {
            Self::Nobodys => false,
            Self::Computing => kind == Kind::Computing,
            Self::Everybodys => true,
        }
    }
}

/// A call that a stuck task is in, as [`StallReport::frames`] tells it.
///
/// [`StallReport::frames`]: crate::runtime::StallReport::frames
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use blitz_io::runtime::{Builder, Preemption};
///
/// let (tell, told) = mpsc::channel();
/// let rt = Builder::new_multi_thread()
///     .preemption(Preemption::new().capture_stacks(true))
///     .on_task_stall(move |stall| drop(tell.send(stall.frames().to_vec())))
///     .build()?;
/// let hog = rt.spawn(async move {
///     loop {
///         if let Ok(frames) = told.try_recv() {
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
    /// The address in the program's code: of the instruction that was interrupted in the first
    /// frame, of the one after a call in the others.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(tell.send(stall.frames().to_vec())))
    ///     .build()?;
    /// let hog = rt.spawn(async move {
    ///     loop {
    ///         if let Ok(frames) = told.try_recv() {
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

    /// The function's name, if the feature `stall-stacks` is on and the program has symbols.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(tell.send(stall.frames().to_vec())))
    ///     .build()?;
    /// let hog = rt.spawn(async move {
    ///     loop {
    ///         if let Ok(frames) = told.try_recv() {
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

    /// The source file, if the feature `stall-stacks` is on and the program was built with
    /// debug information.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(tell.send(stall.frames().to_vec())))
    ///     .build()?;
    /// let hog = rt.spawn(async move {
    ///     loop {
    ///         if let Ok(frames) = told.try_recv() {
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

    /// The line in that file.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(tell.send(stall.frames().to_vec())))
    ///     .build()?;
    /// let hog = rt.spawn(async move {
    ///     loop {
    ///         if let Ok(frames) = told.try_recv() {
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

    /// Whether it is a function of neither this crate nor the standard library, as far as its
    /// name tells.
    pub(super) fn is_users(&self) -> bool {
        const OTHERS: [&str; 4] = ["std", "core", "alloc", "blitz_io"];
        let Some(name) = &self.name else { return false };
        // An implementation is named `<type as trait>::function`.
        let name = name.trim_start_matches(['<', '&', '*', '(', '[']);
        // Functions of C have no path, and types of the language have none before them.
        let Some((first, _)) = name.split_once("::") else { return false };
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        first.chars().all(is_name) && !OTHERS.contains(&first)
    }
}

/// `app::crunch at src/main.rs:12`, or as much of it as is known.
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
pub(super) use self::signal::{frames, inquiry, install};

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
pub(super) use self::none::{frames, inquiry, install};

/// Other systems tell of no stacks.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(blitz_loom)
)))]
mod none {
    use super::{super::stall::Scene, StackFrame};
    use crate::engine::work::inquiry::Inquiry;

    pub(in super::super) fn install() {}

    pub(in super::super) fn inquiry() -> Option<Inquiry> {
        None
    }

    #[cfg_attr(blitz_loom, allow(dead_code, reason = "models tell nobody"))]
    pub(in super::super) fn frames(_: &Scene) -> Option<Vec<StackFrame>> {
        None
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{Kind, StackFrame, Stacks};

    fn named(name: &str) -> StackFrame {
        StackFrame { address: 0x10, name: Some(name.to_owned()), file: None, line: None }
    }

    #[test]
    fn functions_of_users_are_told_from_others() {
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
    fn those_who_wait_are_interrupted_only_where_that_is_asked_for() {
        let wanted = |stacks: Stacks| {
            [Kind::Computing, Kind::Blocked, Kind::Unknown].map(|kind| stacks.are_wanted_of(kind))
        };
        assert_eq!(wanted(Stacks::Nobodys), [false; 3]);
        assert_eq!(wanted(Stacks::Computing), [true, false, false]);
        assert_eq!(wanted(Stacks::Everybodys), [true; 3]);
    }
}
