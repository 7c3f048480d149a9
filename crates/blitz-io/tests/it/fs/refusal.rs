//! Makes the kernel refuse a system call, for this process and from now on, to simulate an older
//! kernel, another file system, a sandbox or a broken disk.

/// The audit number of the architecture, which the kernel passes to the filter with each call.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const ANSWER: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;

/// Makes the system call `call` fail with `errno` on all threads; if `first` is given, only when
/// it equals the first argument. Returns `false` if the system does not permit filters.
pub(crate) fn refuse(call: libc::c_long, first: Option<u32>, errno: i32) -> bool {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![
        step(LOAD, 0, 0, 4),
        step(EQUAL, 0, if first.is_some() { 5 } else { 3 }, ARCHITECTURE),
        step(LOAD, 0, 0, 0),
        step(EQUAL, 0, if first.is_some() { 3 } else { 1 }, call as u32),
    ];
    if let Some(first) = first {
        program.extend([step(LOAD, 0, 0, 16), step(EQUAL, 0, 1, first)]);
    }
    program.extend([step(ANSWER, 0, 0, ERRNO | errno as u32), step(ANSWER, 0, 0, ALLOW)]);
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the call sets a flag of the process and takes no pointers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return false;
    }
    // SAFETY: the filter program is valid until the call has returned.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    answer == 0
}
