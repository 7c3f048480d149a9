//! What processes need and the compiler cannot check.

#[cfg(unix)]
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

#[cfg(unix)]
use super::Command;

#[cfg(unix)]
impl Command {
    /// Has a function called in the child, after it was made and before the program begins.
    ///
    /// # Safety
    ///
    /// 1. Between the two the child is a copy of this process with one thread: other
    ///    threads' locks stay locked, the allocator's among them. So the function may only do
    ///    what a handler of signals may do.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut command = blitz_io::process::Command::new("sh");
    /// command.args(["-c", "umask"]);
    /// // SAFETY: 1. `umask` is one system call.
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
        // SAFETY: 1. is the caller's as well.
        unsafe { std::os::unix::process::CommandExt::pre_exec(self.as_std_mut(), f) };
        self
    }
}

/// A descriptor of a child that was not waited for; `None` if the system has none for us.
#[cfg(target_os = "linux")]
pub(super) fn pidfd_open(pid: u32) -> Option<io::Result<std::os::fd::OwnedFd>> {
    use std::os::fd::{FromRawFd, OwnedFd};

    // SAFETY: two numbers; children do not inherit what it answers.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if answer < 0 {
        let error = io::Error::last_os_error();
        let is_absent = matches!(
            error.raw_os_error(),
            Some(libc::ENOSYS | libc::EPERM | libc::EACCES | libc::ENODEV | libc::EINVAL)
        );
        return (!is_absent).then_some(Err(error));
    }
    let fd = i32::try_from(answer).expect("descriptors are small numbers");
    // SAFETY: it is new, and ours.
    Some(Ok(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Other systems have none.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn pidfd_open(_pid: u32) -> Option<io::Result<std::os::fd::OwnedFd>> {
    None
}

/// Sleeps until one of them can be read. It may end early.
#[cfg(unix)]
pub(super) fn wait_readable(fds: &[BorrowedFd<'_>]) {
    let one =
        |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut asked: Vec<libc::pollfd> = fds.iter().map(one).collect();
    let count = asked.len() as libc::nfds_t;
    // SAFETY: `asked` is ours, and has `count` entries. What it answers does not matter: the
    // caller looks at everything.
    let _ = unsafe { libc::poll(asked.as_mut_ptr(), count, -1) };
}

#[cfg(windows)]
pub(super) use self::of_windows::Called;

#[cfg(windows)]
mod of_windows {
    //! A call of the system's at the end of a process.

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

    /// Who is woken by the call.
    #[derive(Debug)]
    pub(in crate::process) struct Called {
        wait: HANDLE,
        /// The system has its address until `wait` has ended.
        cell: Box<WakerCell>,
    }

    // SAFETY: the handle may be used by any thread, and the cell may be shared.
    unsafe impl Send for Called {}
    // SAFETY: as above.
    unsafe impl Sync for Called {}

    impl Called {
        pub(in crate::process) fn at_the_end_of(child: &StdChild) -> io::Result<Self> {
            let cell = Box::new(WakerCell::new());
            let mut wait = null_mut();
            // SAFETY: the cell lives until `drop`, which waits for the end of the call.
            let begun = unsafe {
                RegisterWaitForSingleObject(
                    &raw mut wait,
                    child.as_raw_handle(),
                    Some(called),
                    (&raw const *cell).cast(),
                    INFINITE,
                    WT_EXECUTEINWAITTHREAD | WT_EXECUTEONLYONCE,
                )
            };
            if begun == 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { wait, cell })
        }

        pub(in crate::process) fn register(&self, waker: &Waker) {
            self.cell.register(waker);
        }
    }

    impl Drop for Called {
        fn drop(&mut self) {
            // SAFETY: it was registered by `at_the_end_of`, and this is done once. With this
            // argument it returns after the call has ended, if one is under way.
            let ended = unsafe { UnregisterWaitEx(self.wait, INVALID_HANDLE_VALUE) };
            assert!(ended != 0, "a wait that was registered ends: {}", io::Error::last_os_error());
        }
    }

    /// # Safety
    /// 1. `cell` is the address of a `WakerCell` that lives.
    unsafe extern "system" fn called(cell: *mut c_void, _timed_out: bool) {
        // SAFETY: 1.
        let cell = unsafe { &*cell.cast::<WakerCell>() };
        // A panic must not leave: a batch of one catches it.
        let mut batch = crate::engine::wait::batch::Batch::new();
        if let Some(waker) = cell.take() {
            batch.push(waker);
        }
        batch.wake_all();
    }
}
