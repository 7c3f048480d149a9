//! How a directory is created.

#![forbid(unsafe_code)]

use std::{io, path::Path};

use super::offload::on_path;

/// Creates directories in various ways.
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
    /// Creates one directory, and everybody may do what the process does not mask.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = blitz_io::fs::DirBuilder::new();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether directories above it are created too; then it is no error if it exists.
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

    /// Who may do what with it, less what the process masks.
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
    /// `AlreadyExists` if there is something and it is not recursive, `NotFound` if there is
    /// nothing to create it in, and others; they name the path.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the directory, or some of those above it, may have been created, or
    /// may be in a moment.
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
        on_path("create the directory", path, move |path| builder.create(path)).await
    }
}
