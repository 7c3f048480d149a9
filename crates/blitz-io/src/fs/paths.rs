//! Operations on a path: each is one call into std, on a blocking thread.
//!
//! None of them runs inline, because none of these system calls can refuse to block: a path
//! component that is not cached in memory is read from the disk.

#![forbid(unsafe_code)]

use std::{
    fs::{Metadata, Permissions},
    io,
    path::{Path, PathBuf},
};

use super::asyncify::{asyncify_path, asyncify_paths};

/// Returns the absolute path with all symbolic links, `.` and `..` resolved.
///
/// # Errors
///
/// Returns an error if a component of the path does not exist, or one that must be a directory is
/// not.
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
    asyncify_path(path, |path| std::fs::canonicalize(path)).await
}

/// Creates a directory.
///
/// # Errors
///
/// Returns `AlreadyExists` if the path exists, `NotFound` if the parent directory is missing, and
/// other errors of the system.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
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
    asyncify_path(path, |path| std::fs::create_dir(path)).await
}

/// Creates a directory and all missing parents. A directory that exists already is not an error.
///
/// # Errors
///
/// Returns `NotADirectory` or `AlreadyExists` if something else is in the way, and other errors of
/// the system. Some of the directories may have been created then.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
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
    asyncify_path(path, |path| std::fs::create_dir_all(path)).await
}

/// Returns the metadata of a file or directory. Symbolic links are followed.
///
/// # Errors
///
/// Returns `NotFound`, `PermissionDenied` and other errors of the system.
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
    asyncify_path(path, |path| std::fs::metadata(path)).await
}

/// Returns the metadata of a file or directory. Symbolic links are not followed: the metadata of
/// the link itself is returned.
///
/// # Errors
///
/// Returns `NotFound`, `PermissionDenied` and other errors of the system.
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
    asyncify_path(path, |path| std::fs::symlink_metadata(path)).await
}

/// Returns the path that a symbolic link points to.
///
/// # Errors
///
/// Returns `InvalidInput` if the path is not a symbolic link, `NotFound` and other errors of the
/// system.
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
    asyncify_path(path, |path| std::fs::read_link(path)).await
}

/// Removes an empty directory.
///
/// # Errors
///
/// Returns `DirectoryNotEmpty`, `NotADirectory`, `NotFound` and other errors of the system.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
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
    asyncify_path(path, |path| std::fs::remove_dir(path)).await
}

/// Removes a directory and everything in it. Symbolic links are removed, not followed.
///
/// # Errors
///
/// Returns `NotFound`, `PermissionDenied` and other errors of the system. Some of the content may
/// have been removed then.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
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
    asyncify_path(path, |path| std::fs::remove_dir_all(path)).await
}

/// Removes a file. On Unix, handles that are open can still use the file until they are closed.
///
/// # Errors
///
/// Returns `NotFound`, `IsADirectory` (or `PermissionDenied`, depending on the system), and other
/// errors.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
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
    asyncify_path(path, |path| std::fs::remove_file(path)).await
}

/// Changes the permissions of a file or directory.
///
/// # Errors
///
/// Returns an error if the process may not change them, `NotFound` and other errors of the system.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
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
    asyncify_path(path, move |path| std::fs::set_permissions(path, perm)).await
}

/// Returns true if the path exists. Symbolic links are followed, so a broken link does not exist.
///
/// The result may be outdated by the time it is used. To open a file, it is better to open it and
/// handle the error.
///
/// # Errors
///
/// Returns `PermissionDenied` and other errors if the system cannot determine it.
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
    asyncify_path(path, |path| std::fs::exists(path)).await
}

/// Renames a file or directory, replacing the destination file. Both paths must be on the same file
/// system.
///
/// The replacement is atomic: a process that opens the new name gets either the old file or the new
/// one, each complete.
///
/// # Errors
///
/// Returns `NotFound`, `CrossesDevices`, `DirectoryNotEmpty` and other errors of the system.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
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
    asyncify_paths((from, to), |from, to| std::fs::rename(from, to)).await
}

/// Creates a hard link: a second name for an existing file.
///
/// # Errors
///
/// Returns `AlreadyExists`, `CrossesDevices`, `NotFound` and other errors of the system.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
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
    asyncify_paths((original, link), |original, link| std::fs::hard_link(original, link)).await
}

/// Creates a symbolic link that points to `original`, which need not exist.
///
/// # Errors
///
/// Returns `AlreadyExists`, `NotFound` and other errors of the system.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
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
    asyncify_paths((original, link), |original, link| std::os::unix::fs::symlink(original, link))
        .await
}

/// Creates a symbolic link that points to a directory.
///
/// # Errors
///
/// Returns `AlreadyExists`, `PermissionDenied` and other errors of the system.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
#[cfg(windows)]
pub async fn symlink_dir(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    asyncify_paths((original, link), |original, link| {
        std::os::windows::fs::symlink_dir(original, link)
    })
    .await
}

/// Creates a symbolic link that points to a file.
///
/// # Errors
///
/// Returns `AlreadyExists`, `PermissionDenied` and other errors of the system.
///
/// # Cancel safety
///
/// If the future is dropped after the operation has started, the operation still completes.
#[cfg(windows)]
pub async fn symlink_file(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    asyncify_paths((original, link), |original, link| {
        std::os::windows::fs::symlink_file(original, link)
    })
    .await
}
