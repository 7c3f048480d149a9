//! When a file was read, written and made, to be set.

#![forbid(unsafe_code)]

use std::time::SystemTime;

/// Times of a file that are to be set, by [`File::set_times`](super::File::set_times). What is
/// not set here stays as it is.
///
/// # Examples
///
/// ```
/// use std::time::SystemTime;
///
/// let now = SystemTime::now();
/// let times = blitz_io::fs::FileTimes::new().set_accessed(now).set_modified(now);
/// ```
#[derive(Debug, Clone, Default)]
pub struct FileTimes {
    std: std::fs::FileTimes,
}

impl FileTimes {
    /// No times.
    ///
    /// # Examples
    ///
    /// ```
    /// let times = blitz_io::fs::FileTimes::new();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets when it was last read.
    ///
    /// # Examples
    ///
    /// ```
    /// let times = blitz_io::fs::FileTimes::new().set_accessed(std::time::SystemTime::now());
    /// ```
    pub fn set_accessed(mut self, t: SystemTime) -> Self {
        self.std = self.std.set_accessed(t);
        self
    }

    /// Sets when it was last written.
    ///
    /// # Examples
    ///
    /// ```
    /// let times = blitz_io::fs::FileTimes::new().set_modified(std::time::SystemTime::now());
    /// ```
    pub fn set_modified(mut self, t: SystemTime) -> Self {
        self.std = self.std.set_modified(t);
        self
    }

    /// Sets when it was created.
    #[cfg(any(windows, target_vendor = "apple"))]
    pub fn set_created(mut self, t: SystemTime) -> Self {
        #[cfg(target_vendor = "apple")]
        use std::os::darwin::fs::FileTimesExt;
        #[cfg(windows)]
        use std::os::windows::fs::FileTimesExt;
        self.std = self.std.set_created(t);
        self
    }

    pub(super) fn into_std(self) -> std::fs::FileTimes {
        self.std
    }
}
