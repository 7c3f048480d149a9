//! Options for opening a file.

#![forbid(unsafe_code)]

use std::{fmt, fs::OpenOptions as StdOpenOptions, io, path::Path};

use super::{
    File,
    asyncify::{asyncify_path, need_runtime},
    inline::{self, InlineSupport, Opened},
};
use crate::engine::work::task::budget;

/// Options and flags that determine how a file is opened.
///
/// Created by [`OpenOptions::new`] or [`File::options`]; every option is off unless set.
///
/// # Examples
///
/// ```
/// use blitz_io::{fs::OpenOptions, io::AsyncWriteExt};
///
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("log");
/// for line in ["one\n", "two\n"] {
///     let mut log = OpenOptions::new().append(true).create(true).open(&path).await?;
///     log.write_all(line.as_bytes()).await?;
///     log.flush().await?;
/// }
/// assert_eq!(blitz_io::fs::read_to_string(&path).await?, "one\ntwo\n");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct OpenOptions {
    std: StdOpenOptions,
    /// `read` was set.
    reads: bool,
    /// Some option besides `read` was set, or may have been.
    not_read_only: bool,
}

impl OpenOptions {
    /// Creates options of which none is set.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().read(true).clone();
    /// ```
    pub fn new() -> OpenOptions {
        Self { std: StdOpenOptions::new(), reads: false, not_read_only: false }
    }

    /// Sets whether the file can be read.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().read(true).clone();
    /// ```
    pub fn read(&mut self, read: bool) -> &mut OpenOptions {
        self.std.read(read);
        self.reads = read;
        self
    }

    /// Sets whether the file can be written. Writes overwrite existing content.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().write(true).clone();
    /// ```
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.std.write(write);
        self.mark_not_read_only(write)
    }

    /// Sets whether each write goes to the end of the file, wherever the end is at that time.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().append(true).clone();
    /// ```
    pub fn append(&mut self, append: bool) -> &mut OpenOptions {
        self.std.append(append);
        self.mark_not_read_only(append)
    }

    /// Sets whether the file is truncated when it is opened. Requires [`write`](Self::write).
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().write(true).truncate(true).clone();
    /// ```
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.std.truncate(truncate);
        self.mark_not_read_only(truncate)
    }

    /// Sets whether the file is created if it does not exist. Requires [`write`](Self::write) or
    /// [`append`](Self::append).
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().write(true).create(true).clone();
    /// ```
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.std.create(create);
        self.mark_not_read_only(create)
    }

    /// Sets whether the file must be created by this call, so that an existing file is an error.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().write(true).create_new(true).clone();
    /// ```
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.std.create_new(create_new);
        self.mark_not_read_only(create_new)
    }

    fn mark_not_read_only(&mut self, set: bool) -> &mut Self {
        self.not_read_only |= set;
        self
    }

    /// Opens the file at `path` with these options.
    ///
    /// A file that is opened only for reading is opened inline if it is local and the kernel has
    /// its path in memory (Linux); every other file is opened by a blocking thread.
    ///
    /// # Errors
    ///
    /// - `NotFound` if the file does not exist and is not to be created, or its directory does not
    ///   exist;
    /// - `AlreadyExists` if `create_new` is set and the file exists;
    /// - `PermissionDenied`, `ReadOnlyFilesystem`, `IsADirectory` and others of the system;
    /// - `InvalidInput` if the options contradict each other, or the path contains a zero byte.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a file that was to be created or truncated may have been already,
    /// or may be shortly after.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("both");
    /// let options = blitz_io::fs::OpenOptions::new().read(true).write(true).create(true).clone();
    /// assert_eq!(options.open(&path).await?.metadata().await?.len(), 0);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        if self.reads && !self.not_read_only {
            need_runtime()?;
            std::future::poll_fn(budget::poll_proceed).await.spend();
            if let Opened::File(std, _) = inline::open(path.as_ref())
                && inline::clear_flags(&std).is_ok()
            {
                return Ok(File::with_support(std, InlineSupport::Local));
            }
        }
        let options = self.std.clone();
        let (std, support) = asyncify_path(path, move |path| {
            let std = options.open(path)?;
            let support = inline::probe_mount(&std);
            Ok((std, support))
        })
        .await?;
        Ok(File::with_support(std, support))
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl From<StdOpenOptions> for OpenOptions {
    fn from(std: StdOpenOptions) -> OpenOptions {
        // Std's options do not reveal which of them are set.
        Self { std, reads: false, not_read_only: true }
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenOptions").field(&self.std).finish()
    }
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::OpenOptionsExt;

    use super::OpenOptions;

    impl OpenOptions {
        /// Sets the permission bits of a created file, from which the process's umask is removed.
        ///
        /// # Examples
        ///
        /// ```
        /// let options = blitz_io::fs::OpenOptions::new().write(true).mode(0o600).clone();
        /// ```
        pub fn mode(&mut self, mode: u32) -> &mut OpenOptions {
            self.std.mode(mode);
            self
        }

        /// Sets additional flags for the system's `open`, such as `O_NOFOLLOW` or `O_DIRECT`.
        ///
        /// # Examples
        ///
        /// ```
        /// let options =
        ///     blitz_io::fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).clone();
        /// ```
        pub fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
            self.std.custom_flags(flags);
            self.mark_not_read_only(flags != 0)
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::os::windows::fs::OpenOptionsExt;

    use super::OpenOptions;

    impl OpenOptions {
        /// Sets the access rights to the file (`dwDesiredAccess`), in place of those that follow
        /// from `read`, `write` and `append`.
        pub fn access_mode(&mut self, access: u32) -> &mut OpenOptions {
            self.std.access_mode(access);
            self.mark_not_read_only(true)
        }

        /// Sets how other opens may share the file while it is open: `dwShareMode`.
        pub fn share_mode(&mut self, share: u32) -> &mut OpenOptions {
            self.std.share_mode(share);
            self.mark_not_read_only(true)
        }

        /// Sets additional flags, which become a part of `dwFlagsAndAttributes`.
        pub fn custom_flags(&mut self, flags: u32) -> &mut OpenOptions {
            self.std.custom_flags(flags);
            self.mark_not_read_only(true)
        }

        /// Sets the attributes of a created file, which become a part of `dwFlagsAndAttributes`.
        pub fn attributes(&mut self, attributes: u32) -> &mut OpenOptions {
            self.std.attributes(attributes);
            self.mark_not_read_only(true)
        }

        /// Sets how far the server of a named pipe may impersonate this process, a part of
        /// `dwFlagsAndAttributes`.
        pub fn security_qos_flags(&mut self, flags: u32) -> &mut OpenOptions {
            self.std.security_qos_flags(flags);
            self.mark_not_read_only(true)
        }
    }
}
