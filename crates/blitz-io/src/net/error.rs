//! Errors that this module creates itself instead of passing on the system's.
//!
//! The system's own errors are returned unchanged, with their error number, because programs
//! match on `raw_os_error()` (`EADDRINUSE`, `ECONNREFUSED`), and an `io::Error` that holds a text
//! of ours has no number. `docs/design/errors.md` says what that costs. A failed look-up has no
//! number in the first place, so its error names the host.

#![forbid(unsafe_code)]

use std::{error, fmt, io};

/// Failed look-up of a host name. The `io::Error` around this has the kind of `cause`.
#[derive(Debug)]
struct LookupError {
    name: String,
    cause: io::Error,
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot look up {}: {}", self.name, self.cause)
    }
}

impl error::Error for LookupError {
    /// Returns the resolver's error.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Adds the name that was looked up to `cause`. An error with a system error number is returned
/// unchanged, because wrapping would lose the number.
#[cold]
pub(crate) fn lookup_failed(name: impl fmt::Display, cause: io::Error) -> io::Error {
    if cause.raw_os_error().is_some() {
        return cause;
    }
    io::Error::new(cause.kind(), LookupError { name: name.to_string(), cause })
}

/// Creates the error for a name without addresses or an empty list of addresses.
#[cold]
pub(crate) fn no_address() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "could not resolve to any address: the name has none, or the list of addresses is empty",
    )
}

#[cfg(all(test, unix))]
mod tests {
    use std::io;

    use super::lookup_failed;

    #[test]
    fn a_failed_lookup_names_the_host_and_keeps_its_kind() {
        let cause = io::Error::new(io::ErrorKind::TimedOut, "no server");
        let error = lookup_failed("`host:80`", cause);
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "cannot look up `host:80`: no server");
    }

    #[test]
    fn a_number_of_the_system_is_kept() {
        let error = lookup_failed("`host:80`", io::Error::from_raw_os_error(libc::EMFILE));
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    }
}
