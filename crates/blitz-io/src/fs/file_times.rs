//! Timestamps to be set on a file.

#![forbid(unsafe_code)]

use std::time::SystemTime;

/// Timestamps to be set on a file by [`File::set_times`](super::File::set_times). Timestamps that
/// are not set here are left unchanged on the file.
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
    /// Creates a set of timestamps in which none is set.
    ///
    /// # Examples
    ///
    /// ```
    /// let times = blitz_io::fs::FileTimes::new();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time of the last access.
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

    /// Sets the time of the last modification.
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

    /// Sets the time of creation.
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
