//! Options for creating directories.

#![forbid(unsafe_code)]

use std::{io, path::Path};

use super::asyncify::asyncify_path;

/// Builder that creates directories with various options.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("a/b/c");
/// blitz_io::fs::DirBuilder::new().recursive(true).create(&path).await?;
/// assert!(path.is_dir());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct DirBuilder {
    recursive: bool,
    #[cfg(unix)]
    mode: Option<u32>,
}

impl DirBuilder {
    /// Creates a builder for a single directory that has all permissions the process's umask
    /// leaves.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = blitz_io::fs::DirBuilder::new();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether missing parent directories are created too. If they are, a directory that
    /// exists already is not an error.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut builder = blitz_io::fs::DirBuilder::new();
    /// builder.recursive(true);
    /// ```
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.recursive = recursive;
        self
    }

    /// Sets the permission bits of created directories, from which the process's umask is removed.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut builder = blitz_io::fs::DirBuilder::new();
    /// builder.mode(0o700);
    /// ```
    #[cfg(unix)]
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = Some(mode);
        self
    }

    /// Creates the directory.
    ///
    /// # Errors
    ///
    /// Returns `AlreadyExists` if the path exists and the builder is not recursive, `NotFound` if
    /// the parent directory is missing, and other errors of the system.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the directory, or some of its parents, may have been created
    /// already, or may be created shortly after.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let error = blitz_io::fs::DirBuilder::new().create(dir.path()).await.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn create(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(self.recursive);
        #[cfg(unix)]
        if let Some(mode) = self.mode {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
        }
        asyncify_path(path, move |path| builder.create(path)).await
    }
}
