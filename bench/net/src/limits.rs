//! The limit of descriptors of this process.

/// Raises the soft limit to the hard one: the rows have both ends of a thousand
/// connections, and most shells begin with 1024 descriptors.
pub(crate) fn raise() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a local that the call writes and that outlives it.
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    assert_eq!(failed, 0, "cannot read the limit of descriptors: run this on linux");
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a local that outlives the call; a soft limit may always be raised to the
    // hard one.
    let failed = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    assert_eq!(failed, 0, "cannot raise the limit of descriptors: see `ulimit -Hn`");
}
