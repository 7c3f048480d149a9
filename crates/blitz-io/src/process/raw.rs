//! Unsafe code for processes.

#[cfg(unix)]
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

#[cfg(unix)]
use super::Command;

#[cfg(unix)]
impl Command {
    /// Registers a function that is called in the child, after the fork and before the program
    /// starts.
    ///
    /// # Safety
    ///
    /// 1. Between fork and exec the child is a copy of this process with one thread: locks of other
    ///    threads stay locked, the allocator's among them. So the function must do only what a
    ///    signal handler may do.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("sh");
    /// command.args(["-c", "umask"]);
    /// // SAFETY: 1. the function makes a single system call, which a signal handler may make.
    /// unsafe {
    ///     command.pre_exec(|| {
    ///         libc::umask(0o077);
    ///         Ok(())
    ///     })
    /// };
    /// assert_eq!(command.output().await?.stdout, b"0077\n");
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    pub unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Command
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static,
    {
        // SAFETY: 1. our caller promises that `f` does only what a signal handler may do.
        unsafe { std::os::unix::process::CommandExt::pre_exec(self.as_std_mut(), f) };
        self
    }
}

/// Opens a pidfd for a child that was not waited for yet. Returns `None` if the system gives us
/// none, for whatever reason: no such system call, a sandbox, or no descriptor left. The child runs
/// either way.
#[cfg(target_os = "linux")]
pub(super) fn pidfd_open(pid: u32) -> Option<std::os::fd::OwnedFd> {
    use std::os::fd::{FromRawFd, OwnedFd};

    // SAFETY: the arguments are two numbers, and no memory is passed. The descriptor is not
    // inherited by children.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    let fd = i32::try_from(result).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the descriptor was opened above, and nothing else owns it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns `None`, because other systems have no pidfd.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn pidfd_open(_pid: u32) -> Option<std::os::fd::OwnedFd> {
    None
}

/// Returns the ID of some child of this process that has exited and was not waited for, whichever
/// code started it; `None` if there is none. The child is not reaped, so its owner can still wait
/// for it.
#[cfg(target_os = "linux")]
pub(super) fn any_exited() -> io::Result<Option<u32>> {
    const WAIT_FLAGS: libc::c_int = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: all bytes zero is a valid `siginfo_t`; its process ID is 0 then.
    let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `found` has room for what is written.
    if unsafe { libc::waitid(libc::P_ALL, 0, &raw mut found, WAIT_FLAGS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `found` is zero, or was written by the call, and has a process ID in both cases.
    let pid = unsafe { found.si_pid() };
    Ok(u32::try_from(pid).ok().filter(|pid| *pid != 0))
}

/// Returns an error, because other systems can only check one child at a time.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn any_exited() -> io::Result<Option<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Milliseconds to sleep where the system does not let us wait for events. The children are then
/// checked ten times a second, which costs no noticeable processor time, and an exit is noticed
/// within that time.
#[cfg(unix)]
const FALLBACK_SLEEP_MS: libc::c_int = 100;

/// Sleeps until `fd` is readable. May return early, but not immediately on every call, so a loop
/// around it does not spin.
#[cfg(unix)]
pub(super) fn wait_readable(fd: BorrowedFd<'_>) {
    let mut entry = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the array of entries is one local variable of ours.
    let result = unsafe { libc::poll(&raw mut entry, 1, -1) };
    // `EINVAL` if the process may have no descriptors at all (`RLIMIT_NOFILE`), and the next call
    // would fail as well.
    if result < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
        // SAFETY: there are no entries, so no memory is accessed. Zero entries never exceed the
        // limit.
        unsafe { libc::poll(std::ptr::null_mut(), 0, FALLBACK_SLEEP_MS) };
    }
}

#[cfg(windows)]
pub(super) use self::windows_ext::ExitCallback;

#[cfg(windows)]
mod windows_ext {
    //! A callback from the system at the exit of a process.

    use std::{
        ffi::c_void, io, os::windows::io::AsRawHandle, process::Child as StdChild, ptr::null_mut,
        task::Waker,
    };

    use windows_sys::Win32::{
        Foundation::{HANDLE, INVALID_HANDLE_VALUE},
        System::Threading::{
            INFINITE, RegisterWaitForSingleObject, UnregisterWaitEx, WT_EXECUTEINWAITTHREAD,
            WT_EXECUTEONLYONCE,
        },
    };

    use crate::engine::wait::waker_cell::WakerCell;

    /// Registration of a callback that wakes a waker when a child exits.
    #[derive(Debug)]
    pub(in crate::process) struct ExitCallback {
        wait: HANDLE,
        /// Its address is known to the system until `wait` is unregistered.
        cell: Box<WakerCell>,
    }

    // SAFETY: any thread may use the wait handle, and `WakerCell` is `Send`.
    unsafe impl Send for ExitCallback {}
    // SAFETY: any thread may use the wait handle, and `WakerCell` may be shared between threads.
    unsafe impl Sync for ExitCallback {}

    impl ExitCallback {
        pub(in crate::process) fn at_exit_of(child: &StdChild) -> io::Result<Self> {
            let cell = Box::new(WakerCell::new());
            let mut wait = null_mut();
            // SAFETY: the cell lives until `drop`, which waits for the end of the callback.
            let registered = unsafe {
                RegisterWaitForSingleObject(
                    &raw mut wait,
                    child.as_raw_handle(),
                    Some(on_exit),
                    (&raw const *cell).cast(),
                    INFINITE,
                    WT_EXECUTEINWAITTHREAD | WT_EXECUTEONLYONCE,
                )
            };
            if registered == 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { wait, cell })
        }

        pub(in crate::process) fn register(&self, waker: &Waker) {
            self.cell.register(waker);
        }
    }

    impl Drop for ExitCallback {
        fn drop(&mut self) {
            // SAFETY: the wait was registered by `at_exit_of`, and is unregistered only here,
            // once. With this argument the call waits for a callback that is running.
            let unregistered = unsafe { UnregisterWaitEx(self.wait, INVALID_HANDLE_VALUE) };
            assert!(
                unregistered != 0,
                "a wait that was registered ends: {}",
                io::Error::last_os_error()
            );
        }
    }

    /// Wakes the waker in `cell`; called by the system when the child has exited.
    ///
    /// # Safety
    /// 1. `cell` is the address of a `WakerCell` that is alive.
    unsafe extern "system" fn on_exit(cell: *mut c_void, _timed_out: bool) {
        // SAFETY: our own obligation 1: `cell` points to a `WakerCell` that is alive.
        let cell = unsafe { &*cell.cast::<WakerCell>() };
        // A panic must not leave this function, and a wake list (of one waker) catches panics.
        let mut wake_list = crate::engine::wait::wake_list::WakeList::new();
        if let Some(waker) = cell.take() {
            wake_list.push(waker);
        }
        wake_list.wake_all();
    }
}
