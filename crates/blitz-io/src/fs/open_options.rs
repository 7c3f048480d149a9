//! How a file is opened.

#![forbid(unsafe_code)]

use std::{fmt, fs::OpenOptions as StdOpenOptions, io, path::Path};

use super::{
    File,
    inline::{self, Nature, Opened},
    offload::{need_runtime, on_path},
};
use crate::engine::work::task::budget;

/// Options and flags that say how a file is opened.
///
/// Made by [`OpenOptions::new`] or [`File::options`]; what is not set is off.
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
    /// Reading was asked for.
    reads: bool,
    /// And something else, or perhaps.
    more: bool,
}

impl OpenOptions {
    /// Options of which none is set.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().read(true).clone();
    /// ```
    pub fn new() -> OpenOptions {
        Self { std: StdOpenOptions::new(), reads: false, more: false }
    }

    /// Whether the file can be read.
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

    /// Whether the file can be written, over what is there.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().write(true).clone();
    /// ```
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.std.write(write);
        self.and_more(write)
    }

    /// Whether each write goes to the end of the file, wherever that is then.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().append(true).clone();
    /// ```
    pub fn append(&mut self, append: bool) -> &mut OpenOptions {
        self.std.append(append);
        self.and_more(append)
    }

    /// Whether what is in the file is cut off. Needs [`write`](Self::write).
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().write(true).truncate(true).clone();
    /// ```
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.std.truncate(truncate);
        self.and_more(truncate)
    }

    /// Whether the file is created if it does not exist. Needs [`write`](Self::write) or
    /// [`append`](Self::append).
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().write(true).create(true).clone();
    /// ```
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.std.create(create);
        self.and_more(create)
    }

    /// Whether the file must be a new one: it is an error if it exists.
    ///
    /// # Examples
    ///
    /// ```
    /// let options = blitz_io::fs::OpenOptions::new().write(true).create_new(true).clone();
    /// ```
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.std.create_new(create_new);
        self.and_more(create_new)
    }

    fn and_more(&mut self, set: bool) -> &mut Self {
        self.more |= set;
        self
    }

    /// Opens a file.
    ///
    /// A file that is only read is opened at once if it is local and the kernel has its name
    /// in memory (Linux); all else is done by a thread for blocking work.
    ///
    /// # Errors
    ///
    /// - `NotFound` if it does not exist and is not to be created, or its folder does not;
    /// - `AlreadyExists` if it was to be a new one;
    /// - `PermissionDenied`, `ReadOnlyFilesystem`, `IsADirectory` and others of the system;
    /// - `InvalidInput` if the options contradict each other, or the path has a zero in it.
    ///
    /// They name the path.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, a file that was to be created or cut off may have been, or may be in
    /// a moment.
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
        if self.reads && !self.more {
            need_runtime();
            std::future::poll_fn(budget::proceed).await.spend();
            if let Opened::File(std, _) = inline::open(path.as_ref())
                && inline::make_plain(&std).is_ok()
            {
                return Ok(File::with_nature(std, Nature::Local));
            }
        }
        let options = self.std.clone();
        let (std, nature) = on_path("open", path, move |path| {
            let std = options.open(path)?;
            let nature = inline::learn(&std);
            Ok((std, nature))
        })
        .await?;
        Ok(File::with_nature(std, nature))
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl From<StdOpenOptions> for OpenOptions {
    fn from(std: StdOpenOptions) -> OpenOptions {
        // It does not say what is set.
        Self { std, reads: false, more: true }
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
        /// Who may do what with a file that is created, less what the process masks.
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

        /// Flags of the system's `open` besides those of the options, such as `O_NOFOLLOW` or
        /// `O_DIRECT`.
        ///
        /// # Examples
        ///
        /// ```
        /// let options =
        ///     blitz_io::fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).clone();
        /// ```
        pub fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
            self.std.custom_flags(flags);
            self.and_more(flags != 0)
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::os::windows::fs::OpenOptionsExt;

    use super::OpenOptions;

    impl OpenOptions {
        /// What may be done with the file, in place of `read`, `write` and `append`:
        /// `dwDesiredAccess`.
        pub fn access_mode(&mut self, access: u32) -> &mut OpenOptions {
            self.std.access_mode(access);
            self.and_more(true)
        }

        /// What others may do with it meanwhile: `dwShareMode`.
        pub fn share_mode(&mut self, share: u32) -> &mut OpenOptions {
            self.std.share_mode(share);
            self.and_more(true)
        }

        /// Flags besides those of the options: a part of `dwFlagsAndAttributes`.
        pub fn custom_flags(&mut self, flags: u32) -> &mut OpenOptions {
            self.std.custom_flags(flags);
            self.and_more(true)
        }

        /// What a file has that is created: a part of `dwFlagsAndAttributes`.
        pub fn attributes(&mut self, attributes: u32) -> &mut OpenOptions {
            self.std.attributes(attributes);
            self.and_more(true)
        }

        /// Whom the other end of a named pipe may take us for: a part of
        /// `dwFlagsAndAttributes`.
        pub fn security_qos_flags(&mut self, flags: u32) -> &mut OpenOptions {
            self.std.security_qos_flags(flags);
            self.and_more(true)
        }
    }
}
