//! Makes system calls fail in this process, to simulate an older kernel, another file system, a
//! sandbox or a broken disk.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

/// The audit number of the architecture, which the kernel passes to the filter with each call.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Makes the system call fail with `EPERM` on this thread and on threads that it starts from now
/// on; with `SECCOMP_FILTER_FLAG_TSYNC`, on all threads.
pub(crate) fn forbid(call: libc::c_long, flags: libc::c_ulong) {
    forbid_with(call, libc::EPERM, flags);
}

/// Does what [`forbid`] does, with another error number.
pub(crate) fn forbid_with(call: libc::c_long, errno: libc::c_int, flags: libc::c_ulong) {
    assert!(install(call, None, errno, flags), "the system does not permit filters");
}

/// Makes the system call `call` fail with `errno` on all threads; if `first` is given, only when
/// it equals the first argument. Returns `false` if the system does not permit filters.
pub(crate) fn refuse(call: libc::c_long, first: Option<u32>, errno: libc::c_int) -> bool {
    install(call, first, errno, libc::SECCOMP_FILTER_FLAG_TSYNC)
}

fn install(call: libc::c_long, first: Option<u32>, errno: i32, flags: libc::c_ulong) -> bool {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // The filter sees the number of the call, the architecture and the arguments, in words at
    // these offsets: 0, 4, 16.
    let mut steps = vec![
        step(LOAD_WORD, 0, 0, 4),
        step(JUMP_IF_EQUAL, 0, if first.is_some() { 5 } else { 3 }, ARCHITECTURE),
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, if first.is_some() { 3 } else { 1 }, call as u32),
    ];
    if let Some(first) = first {
        steps.extend([step(LOAD_WORD, 0, 0, 16), step(JUMP_IF_EQUAL, 0, 1, first)]);
    }
    steps.extend([
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]);
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the call sets a flag of the process and takes no pointers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return false;
    }
    let (call, mode) = (libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER);
    // SAFETY: the call reads `program` and `steps`, which outlive it.
    unsafe { libc::syscall(call, mode, flags, &raw const program) == 0 }
}
