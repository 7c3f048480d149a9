//! What is done to a file by its path: each is one call of std's, on a thread for blocking
//! work.
//!
//! Not at once, since no call of these says 'not without waiting': a path whose names are not
//! in memory is read from the disk.

#![forbid(unsafe_code)]

use std::{
    fs::{Metadata, Permissions},
    io,
    path::{Path, PathBuf},
};

use super::offload::{on_path, on_paths};

/// The absolute path without links, `.` and `..`.
///
/// # Errors
///
/// If something on the way does not exist, or what should be a directory is none; the error
/// names the path.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::create_dir(dir.path().join("sub")).await?;
/// let found = blitz_io::fs::canonicalize(dir.path().join("sub/..")).await?;
/// assert_eq!(found, dir.path().canonicalize()?);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    on_path("resolve", path, |path| std::fs::canonicalize(path)).await
}

/// Creates a directory.
///
/// # Errors
///
/// `AlreadyExists` if there is something, `NotFound` if there is nothing to create it in, and
/// others; they name the path.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::create_dir(dir.path().join("sub")).await?;
/// assert!(dir.path().join("sub").is_dir());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("create the directory", path, |path| std::fs::create_dir(path)).await
}

/// Creates a directory and those above it that are missing. It is no error if it exists.
///
/// # Errors
///
/// `NotADirectory` or `AlreadyExists` if something else is in the way, and others; they name
/// the path. Some of the directories may have been created then.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::create_dir_all(dir.path().join("a/b/c")).await?;
/// assert!(dir.path().join("a/b/c").is_dir());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("create the directory", path, |path| std::fs::create_dir_all(path)).await
}

/// What the system knows about a file; of a symbolic link, about what it points to.
///
/// # Errors
///
/// `NotFound`, `PermissionDenied` and others; they name the path.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// assert!(blitz_io::fs::metadata(dir.path()).await?.is_dir());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    on_path("look at", path, |path| std::fs::metadata(path)).await
}

/// What the system knows about a file; of a symbolic link, about the link.
///
/// # Errors
///
/// `NotFound`, `PermissionDenied` and others; they name the path.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// # #[cfg(unix)] {
/// blitz_io::fs::symlink("nowhere", dir.path().join("link")).await?;
/// let link = blitz_io::fs::symlink_metadata(dir.path().join("link")).await?;
/// assert!(link.is_symlink());
/// # }
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    on_path("look at", path, |path| std::fs::symlink_metadata(path)).await
}

/// What a symbolic link points to.
///
/// # Errors
///
/// `InvalidInput` if it is no link, `NotFound` and others; they name the path.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// # #[cfg(unix)] {
/// blitz_io::fs::symlink("nowhere", dir.path().join("link")).await?;
/// let target = blitz_io::fs::read_link(dir.path().join("link")).await?;
/// assert_eq!(target.to_str(), Some("nowhere"));
/// # }
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    on_path("read the link", path, |path| std::fs::read_link(path)).await
}

/// Removes a directory that is empty.
///
/// # Errors
///
/// `DirectoryNotEmpty`, `NotADirectory`, `NotFound` and others; they name the path.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::create_dir(dir.path().join("sub")).await?;
/// blitz_io::fs::remove_dir(dir.path().join("sub")).await?;
/// assert!(!dir.path().join("sub").exists());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("remove the directory", path, |path| std::fs::remove_dir(path)).await
}

/// Removes a directory with all that is in it. Links are removed, not followed.
///
/// # Errors
///
/// `NotFound`, `PermissionDenied` and others; they name the path. A part may have been removed
/// then.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::create_dir_all(dir.path().join("a/b/c")).await?;
/// blitz_io::fs::remove_dir_all(dir.path().join("a")).await?;
/// assert!(!dir.path().join("a").exists());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("remove the directory", path, |path| std::fs::remove_dir_all(path)).await
}

/// Removes a file. Whoever has it open can use it until it is closed, on Unix.
///
/// # Errors
///
/// `NotFound`, `IsADirectory` (or `PermissionDenied`, by the system), and others; they name the
/// path.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::write(dir.path().join("one"), "1").await?;
/// blitz_io::fs::remove_file(dir.path().join("one")).await?;
/// assert!(!dir.path().join("one").exists());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("remove", path, |path| std::fs::remove_file(path)).await
}

/// Changes who may do what with a file.
///
/// # Errors
///
/// If it is not ours to change, `NotFound` and others; they name the path.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::write(dir.path().join("one"), "1").await?;
/// let mut permissions = blitz_io::fs::metadata(dir.path().join("one")).await?.permissions();
/// permissions.set_readonly(true);
/// blitz_io::fs::set_permissions(dir.path().join("one"), permissions).await?;
/// assert!(dir.path().join("one").metadata()?.permissions().readonly());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn set_permissions(path: impl AsRef<Path>, perm: Permissions) -> io::Result<()> {
    on_path("change the permissions of", path, move |path| std::fs::set_permissions(path, perm))
        .await
}

/// Whether there is something at a path. A link that points nowhere is nothing.
///
/// By the time it is known it may have changed: who wants to open the file does better to try
/// that.
///
/// # Errors
///
/// If it cannot be told: `PermissionDenied` and others; they name the path.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// assert!(blitz_io::fs::try_exists(dir.path()).await?);
/// assert!(!blitz_io::fs::try_exists(dir.path().join("none")).await?);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn try_exists(path: impl AsRef<Path>) -> io::Result<bool> {
    on_path("look at", path, |path| std::fs::exists(path)).await
}

/// Gives a file or directory another name, in place of a file that has it. Both must be on one
/// file system.
///
/// Nobody sees a moment in between: who opens the new name gets the old file or the new one,
/// whole.
///
/// # Errors
///
/// `NotFound`, `CrossesDevices`, `DirectoryNotEmpty` and others; they name both paths.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// let (from, to) = (dir.path().join("a"), dir.path().join("b"));
/// blitz_io::fs::write(&from, "hello").await?;
/// blitz_io::fs::rename(&from, &to).await?;
/// assert_eq!(blitz_io::fs::read(&to).await?, b"hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    on_paths("rename", (from, to), |from, to| std::fs::rename(from, to)).await
}

/// Gives a file a second name.
///
/// # Errors
///
/// `AlreadyExists`, `CrossesDevices`, `NotFound` and others; they name both paths.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// let (one, two) = (dir.path().join("one"), dir.path().join("two"));
/// blitz_io::fs::write(&one, "hello").await?;
/// blitz_io::fs::hard_link(&one, &two).await?;
/// assert_eq!(blitz_io::fs::read(&two).await?, b"hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    on_paths("link", (original, link), |original, link| std::fs::hard_link(original, link)).await
}

/// Creates a symbolic link that points to `original`, which need not exist.
///
/// # Errors
///
/// `AlreadyExists`, `NotFound` and others; they name both paths.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::symlink("nowhere", dir.path().join("link")).await?;
/// assert!(dir.path().join("link").is_symlink());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[cfg(unix)]
pub async fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    on_paths("link", (original, link), |original, link| std::os::unix::fs::symlink(original, link))
        .await
}

/// Creates a symbolic link that points to a directory.
///
/// # Errors
///
/// `AlreadyExists`, `PermissionDenied` and others; they name both paths.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
#[cfg(windows)]
pub async fn symlink_dir(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    on_paths("link", (original, link), |original, link| {
        std::os::windows::fs::symlink_dir(original, link)
    })
    .await
}

/// Creates a symbolic link that points to a file.
///
/// # Errors
///
/// `AlreadyExists`, `PermissionDenied` and others; they name both paths.
///
/// # Cancel safety
///
/// If it is dropped once begun, it is still done.
#[cfg(windows)]
pub async fn symlink_file(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    on_paths("link", (original, link), |original, link| {
        std::os::windows::fs::symlink_file(original, link)
    })
    .await
}
