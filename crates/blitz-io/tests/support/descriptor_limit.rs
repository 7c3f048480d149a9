//! Raises the limit of open descriptors, which all tests of a program share.

/// Raises the limit to 4,096 where the system lets it, because many systems begin with 1,024 or
/// less. Returns the limit then.
#[cfg(unix)]
#[allow(
    clippy::unnecessary_fallible_conversions,
    clippy::useless_conversion,
    reason = "`rlim_t` has 32 bits on some systems and a sign on FreeBSD"
)]
pub(crate) fn raise() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills `limit`, which outlives it.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    limit.rlim_cur = limit.rlim_cur.max(4_096.min(limit.rlim_max));
    // SAFETY: the call reads `limit`, which outlives it.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    limit.rlim_cur.try_into().expect("no limit is negative")
}

/// Returns the limit of systems that have none of their own.
#[cfg(not(unix))]
pub(crate) fn raise() -> u64 {
    u64::MAX
}
