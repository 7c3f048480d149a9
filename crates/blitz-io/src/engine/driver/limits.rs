//! Raises the limit of open descriptors, for tests that need many.

/// The number of descriptors that other tests of the same process may have open at the same time.
const OTHERS: u64 = 200;

/// Returns true if a test may open `count` descriptors, after raising the limit of this process if
/// necessary. If the system does not allow that many, prints that the test is skipped.
#[cfg(unix)]
pub(crate) fn allow_descriptors(count: u64) -> bool {
    let wanted = count + OTHERS;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills `limit`, which outlives it.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    #[allow(clippy::useless_conversion, reason = "the numbers are signed on some systems")]
    let [now, most] =
        [limit.rlim_cur, limit.rlim_max].map(|it| u64::try_from(it).unwrap_or(u64::MAX));
    if most < wanted {
        println!("skipped: it needs {wanted} descriptors, and this process may have {most}");
        return false;
    }
    if now < wanted {
        limit.rlim_cur = wanted as libc::rlim_t;
        // SAFETY: the call reads `limit`, which outlives it.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    }
    true
}

/// Returns true: there is no such limit here.
#[cfg(not(unix))]
pub(crate) fn allow_descriptors(count: u64) -> bool {
    let _ = count + OTHERS;
    true
}
