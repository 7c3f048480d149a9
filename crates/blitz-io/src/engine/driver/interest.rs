//! The kinds of readiness that a caller waits for.

use std::{
    fmt,
    ops::{BitOr, BitOrAssign},
};

use super::ready::Ready;

const READABLE: u8 = 1;
const WRITABLE: u8 = 1 << 1;
#[cfg(any(target_os = "linux", target_os = "android"))]
const PRIORITY: u8 = 1 << 2;
const ERROR: u8 = 1 << 3;

/// The readiness events to wait for: reading, writing, errors, or urgent data.
///
/// Passed to [`AsyncFd::with_interest`] and to the methods `ready`, `async_io` and `try_io`.
/// Interests are combined with [`add`](Self::add) or `|`.
///
/// [`AsyncFd::with_interest`]: https://docs.rs/tokio/1/tokio/io/unix/struct.AsyncFd.html
///
/// # Examples
///
/// ```
/// use blitz_io::io::Interest;
///
/// let both = Interest::READABLE | Interest::WRITABLE;
/// assert!(both.is_readable() && both.is_writable());
/// assert_eq!(both.remove(Interest::WRITABLE), Some(Interest::READABLE));
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "net")))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// Interest in reading: data is available, or the read half is closed.
    pub const READABLE: Self = Self(READABLE);

    /// Interest in writing: there is room to write, or the write half is closed.
    pub const WRITABLE: Self = Self(WRITABLE);

    /// Interest in a pending error.
    pub const ERROR: Self = Self(ERROR);

    /// Interest in urgent events: out-of-band data, or a change of a file in `/sys` that supports
    /// notification.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[cfg_attr(docsrs, doc(cfg(any(target_os = "linux", target_os = "android"))))]
    pub const PRIORITY: Self = Self(PRIORITY);

    /// Returns `true` if this includes interest in reading.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Interest;
    ///
    /// assert!(Interest::READABLE.is_readable());
    /// assert!(!Interest::WRITABLE.is_readable());
    /// ```
    pub const fn is_readable(self) -> bool {
        self.0 & READABLE != 0
    }

    /// Returns `true` if this includes interest in writing.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Interest;
    ///
    /// assert!(Interest::READABLE.add(Interest::WRITABLE).is_writable());
    /// assert!(!Interest::READABLE.is_writable());
    /// ```
    pub const fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    /// Returns `true` if this includes interest in errors.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Interest;
    ///
    /// assert!(Interest::ERROR.is_error());
    /// assert!(!Interest::WRITABLE.is_error());
    /// ```
    pub const fn is_error(self) -> bool {
        self.0 & ERROR != 0
    }

    /// Returns `true` if this includes interest in urgent events.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Interest;
    ///
    /// assert!(Interest::PRIORITY.is_priority());
    /// assert!(!Interest::READABLE.is_priority());
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[cfg_attr(docsrs, doc(cfg(any(target_os = "linux", target_os = "android"))))]
    pub const fn is_priority(self) -> bool {
        self.0 & PRIORITY != 0
    }

    /// Returns the union of two interests.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Interest;
    ///
    /// const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);
    /// assert!(BOTH.is_readable() && BOTH.is_writable());
    /// ```
    #[must_use = "the sum is returned; the interest itself stays as it is"]
    pub const fn add(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns this interest without `other`, or `None` if nothing is left, because an interest is
    /// never empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::Interest;
    ///
    /// let both = Interest::READABLE | Interest::WRITABLE;
    /// assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    /// assert_eq!(both.remove(both), None);
    /// ```
    #[must_use = "the rest is returned; the interest itself stays as it is"]
    pub fn remove(self, other: Self) -> Option<Self> {
        let rest = self.0 & !other.0;
        (rest != 0).then_some(Self(rest))
    }

    /// Returns the readiness flags that satisfy this interest.
    #[inline]
    pub(crate) const fn mask(self) -> Ready {
        let mut mask = Ready::EMPTY;
        if self.is_readable() {
            mask = mask.with(Ready::READABLE).with(Ready::READ_CLOSED);
        }
        if self.is_writable() {
            mask = mask.with(Ready::WRITABLE).with(Ready::WRITE_CLOSED);
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.is_priority() {
            mask = mask.with(Ready::PRIORITY).with(Ready::READ_CLOSED);
        }
        if self.is_error() {
            mask = mask.with(Ready::ERROR);
        }
        mask
    }
}

impl BitOr for Interest {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.add(other)
    }
}

impl BitOrAssign for Interest {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        *self = self.add(other);
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.is_readable(), "READABLE"),
            (self.is_writable(), "WRITABLE"),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            (self.is_priority(), "PRIORITY"),
            (self.is_error(), "ERROR"),
        ];
        let mut separator = "";
        for (_, name) in names.into_iter().filter(|(included, _)| *included) {
            write!(f, "{separator}{name}")?;
            separator = " | ";
        }
        Ok(())
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::Interest;
    use crate::engine::driver::ready::Ready;

    #[test]
    fn an_interest_is_printed_as_it_is_written() {
        let mut interest = Interest::READABLE;
        interest |= Interest::ERROR;
        assert_eq!(format!("{interest:?}"), "READABLE | ERROR");
        assert_eq!(format!("{:?}", Interest::WRITABLE), "WRITABLE");
    }

    #[test]
    fn a_closed_end_satisfies_waits_in_that_direction() {
        assert_eq!(Interest::READABLE.mask(), Ready::READABLE | Ready::READ_CLOSED);
        assert_eq!(Interest::WRITABLE.mask(), Ready::WRITABLE | Ready::WRITE_CLOSED);
        assert_eq!(Interest::ERROR.mask(), Ready::ERROR);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_wait_for_urgent_data_ends_with_the_stream() {
        assert_eq!(Interest::PRIORITY.mask(), Ready::PRIORITY | Ready::READ_CLOSED);
        assert_eq!(format!("{:?}", Interest::PRIORITY | Interest::WRITABLE), "WRITABLE | PRIORITY");
    }
}
