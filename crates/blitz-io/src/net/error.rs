//! Errors that say which operation failed, and at which address.
//!
//! The kernel's number alone ("connection refused") does not tell which of several
//! addresses refused. So what opens, binds or connects says where, if its `ErrorKind` says
//! what: one that has no kind is known by its number alone, and stays as it is. So does
//! what happens on an open socket: programs look at its number, and they know which
//! socket they asked.

#![forbid(unsafe_code)]

use std::{error, fmt, io};

/// What could not be done, where, and why. The kind of the `io::Error` around it is the
/// kind of `cause`.
#[derive(Debug)]
struct Failed {
    operation: &'static str,
    place: String,
    cause: io::Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.operation, self.place, self.cause)
    }
}

impl error::Error for Failed {
    /// The kernel's error, with its number.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// `cause`, which happened to `operation` ('connect to') at `place` (an address).
#[cold]
pub(crate) fn at(operation: &'static str, place: impl fmt::Display, cause: io::Error) -> io::Error {
    let kind = cause.kind();
    if cause.raw_os_error().is_some() && !has_kind(kind) {
        return cause;
    }
    io::Error::new(kind, Failed { operation, place: place.to_string(), cause })
}

/// Whether the kind says what happened. Those of the kernel's errors that have none of their
/// own share one that has no name.
fn has_kind(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        AddrInUse, AddrNotAvailable, AlreadyExists, ConnectionAborted, ConnectionRefused,
        ConnectionReset, HostUnreachable, InvalidInput, NetworkDown, NetworkUnreachable,
        NotADirectory, NotConnected, NotFound, OutOfMemory, PermissionDenied, TimedOut,
    };
    matches!(
        kind,
        AddrInUse
            | AddrNotAvailable
            | AlreadyExists
            | ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | InvalidInput
            | NetworkDown
            | NetworkUnreachable
            | NotADirectory
            | NotConnected
            | NotFound
            | OutOfMemory
            | PermissionDenied
            | TimedOut
    )
}

/// A name was looked up, or a list was given, and there is no address in it.
#[cold]
pub(crate) fn no_address() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "could not resolve to any address: the name has none, or the list of addresses is empty",
    )
}

#[cfg(all(test, unix))]
mod tests {
    use std::{error::Error, io};

    use super::at;

    #[test]
    fn an_error_keeps_its_kind_and_the_number_behind_it() {
        let refused = || io::Error::from_raw_os_error(libc::ECONNREFUSED);
        let error = at("connect to", "127.0.0.1:9", refused());
        assert_eq!(error.kind(), refused().kind());
        assert!(error.to_string().starts_with("cannot connect to 127.0.0.1:9: "), "{error}");
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(libc::ECONNREFUSED));
    }
}
