//! The readiness of a file descriptor, as a set of flags.

use std::{
    fmt,
    ops::{BitAnd, BitOr, BitOrAssign, Sub},
};

const READABLE: u8 = 1;
const WRITABLE: u8 = 1 << 1;
const READ_CLOSED: u8 = 1 << 2;
const WRITE_CLOSED: u8 = 1 << 3;
#[cfg(any(target_os = "linux", target_os = "android"))]
const PRIORITY: u8 = 1 << 4;
const ERROR: u8 = 1 << 5;

/// The set of operations that an I/O resource is ready for, as far as the runtime knows.
///
/// Readiness may be a false positive: an operation on a resource that is reported as ready may
/// still return `WouldBlock`, for example because another task used the readiness up first.
///
/// # Examples
///
/// ```
/// use blitz_io::io::Ready;
///
/// let ready = Ready::READABLE | Ready::WRITE_CLOSED;
/// assert!(ready.is_readable() && !ready.is_read_closed());
/// assert!(ready.is_writable(), "a write would fail at once, so no task has to wait");
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "net")))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready(u8);

impl Ready {
    /// The empty set: no operation is known to be ready.
    pub const EMPTY: Self = Self(0);

    /// Data can be read.
    pub const READABLE: Self = Self(READABLE);

    /// There is room to write.
    pub const WRITABLE: Self = Self(WRITABLE);

    /// The read half is closed: the peer writes no more, so the remaining data can be read,
    /// followed by the end of the stream.
    pub const READ_CLOSED: Self = Self(READ_CLOSED);

    /// The write half is closed: the peer reads no more, so a write fails.
    pub const WRITE_CLOSED: Self = Self(WRITE_CLOSED);

    /// Urgent (out-of-band) data or another exceptional condition is pending.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[cfg_attr(docsrs, doc(cfg(any(target_os = "linux", target_os = "android"))))]
    pub const PRIORITY: Self = Self(PRIORITY);

    /// An error is pending and can be fetched.
    pub const ERROR: Self = Self(ERROR);

    /// The set of all flags.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const ALL: Self = Self(READABLE | WRITABLE | READ_CLOSED | WRITE_CLOSED | PRIORITY | ERROR);

    /// The set of all flags.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub const ALL: Self = Self(READABLE | WRITABLE | READ_CLOSED | WRITE_CLOSED | ERROR);

    /// Returns `true` if no flag is set.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Ready;
    ///
    /// assert!(Ready::EMPTY.is_empty());
    /// assert!(!Ready::READABLE.is_empty());
    /// ```
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Returns `true` if a read would complete: with data, with the end of the stream, or with an
    /// error.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Ready;
    ///
    /// assert!(Ready::READABLE.is_readable() && Ready::READ_CLOSED.is_readable());
    /// assert!(!Ready::WRITABLE.is_readable());
    /// ```
    pub fn is_readable(self) -> bool {
        self.0 & (READABLE | READ_CLOSED) != 0
    }

    /// Returns `true` if a write would complete: it accepts some bytes, or fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Ready;
    ///
    /// assert!(Ready::WRITABLE.is_writable() && Ready::WRITE_CLOSED.is_writable());
    /// assert!(!Ready::READABLE.is_writable());
    /// ```
    pub fn is_writable(self) -> bool {
        self.0 & (WRITABLE | WRITE_CLOSED) != 0
    }

    /// Returns `true` if the read half is closed, because the peer writes no more.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Ready;
    ///
    /// assert!(Ready::READ_CLOSED.is_read_closed());
    /// assert!(!Ready::READABLE.is_read_closed());
    /// ```
    pub fn is_read_closed(self) -> bool {
        self.0 & READ_CLOSED != 0
    }

    /// Returns `true` if the write half is closed, because the peer reads no more.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Ready;
    ///
    /// assert!(Ready::WRITE_CLOSED.is_write_closed());
    /// assert!(!Ready::WRITABLE.is_write_closed());
    /// ```
    pub fn is_write_closed(self) -> bool {
        self.0 & WRITE_CLOSED != 0
    }

    /// Returns `true` if urgent data or another exceptional condition is pending.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Ready;
    ///
    /// assert!(Ready::PRIORITY.is_priority());
    /// assert!(!Ready::READABLE.is_priority());
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[cfg_attr(docsrs, doc(cfg(any(target_os = "linux", target_os = "android"))))]
    pub fn is_priority(self) -> bool {
        self.0 & PRIORITY != 0
    }

    /// Returns `true` if an error is pending.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Ready;
    ///
    /// assert!(Ready::ERROR.is_error());
    /// assert!(!Ready::READABLE.is_error());
    /// ```
    pub fn is_error(self) -> bool {
        self.0 & ERROR != 0
    }

    /// Returns the union of two sets; `|` for constants.
    #[inline]
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if the two sets have a flag in common.
    #[inline]
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the flags as the lowest bits of a word.
    #[inline]
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// Restores a set from [`bits`](Self::bits), ignoring unknown bits.
    #[inline]
    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }
}

impl BitOr for Ready {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl BitOrAssign for Ready {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        *self = self.with(other);
    }
}

impl BitAnd for Ready {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Sub for Ready {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Ready");
        debug
            .field("is_readable", &self.is_readable())
            .field("is_writable", &self.is_writable())
            .field("is_read_closed", &self.is_read_closed())
            .field("is_write_closed", &self.is_write_closed())
            .field("is_error", &self.is_error());
        #[cfg(any(target_os = "linux", target_os = "android"))]
        debug.field("is_priority", &self.is_priority());
        debug.finish()
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::Ready;

    #[test]
    fn ready_is_a_set() {
        let both = Ready::READABLE | Ready::WRITABLE;
        assert_eq!(both - Ready::READABLE, Ready::WRITABLE);
        assert_eq!(both & Ready::READABLE, Ready::READABLE);
        assert_eq!(Ready::from_bits(both.bits()), both);
        assert_eq!(Ready::from_bits(u8::MAX), Ready::ALL);
        assert!(both.meets(Ready::WRITABLE) && !both.meets(Ready::ERROR));
    }
}
