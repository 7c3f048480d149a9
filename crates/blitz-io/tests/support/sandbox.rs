//! Forbids system calls to a process.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

/// Makes the system call fail on this thread and on threads that it starts from now on; with
/// `SECCOMP_FILTER_FLAG_TSYNC`, on all threads.
pub(crate) fn forbid(call: libc::c_long, flags: libc::c_ulong) {
    forbid_with(call, libc::EPERM, flags);
}

/// Does what [`forbid`] does, with another error number.
pub(crate) fn forbid_with(call: libc::c_long, number: libc::c_int, flags: libc::c_ulong) {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        // The number of the call is the first word that a filter sees.
        step(LOAD_NUMBER, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, call as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | number as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: 1. the first call takes integers. 2. The second call reads `program` and `steps`,
    // which outlive it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let (call, mode) = (libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER);
        assert_eq!(libc::syscall(call, mode, flags, &raw const program), 0);
    }
}
