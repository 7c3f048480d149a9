//! Files that are read or written whole.
//!
//! A small file in the page cache is opened, read and closed inline, on the calling thread. If the
//! file is larger, or a part of it is not cached, a blocking thread reads the rest.

#![forbid(unsafe_code)]

use std::{fs::File, future::poll_fn, io, io::Read, path::Path};

use super::{
    asyncify::{asyncify_path, need_runtime},
    inline::{self, Opened},
    raw,
};
use crate::engine::work::task::budget;

/// The result of the inline attempt to read a whole file.
enum InlineRead {
    All(Vec<u8>),
    /// The open file, and the first bytes of its content.
    Part(File, Vec<u8>),
    Nothing,
}

fn read_inline(path: &Path) -> InlineRead {
    let Opened::File(file, size) = inline::open(path) else { return InlineRead::Nothing };
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if size > inline::MAX_INLINE {
        return InlineRead::Part(file, Vec::new());
    }
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        match inline::read_to_vec(&file, &mut bytes) {
            // The file was truncated after it was opened.
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => return InlineRead::Part(file, bytes),
        }
    }
    InlineRead::All(bytes)
}

/// Reads the whole file into a vector of bytes.
///
/// A local file of at most 128 KiB that lies in the page cache is read inline (Linux); any other
/// file is read by a blocking thread. The result is a consistent snapshot only if no other thread
/// or process writes to the file meanwhile.
///
/// # Errors
///
/// Returns an error if the file does not exist, is a directory, may not be read, and so on.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("file");
/// blitz_io::fs::write(&path, "hello").await?;
/// assert_eq!(blitz_io::fs::read(&path).await?, b"hello");
///
/// let error = blitz_io::fs::read(dir.path()).await.unwrap_err();
/// # #[cfg(unix)]
/// assert_eq!(error.kind(), std::io::ErrorKind::IsADirectory);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    need_runtime()?;
    let unit = poll_fn(budget::poll_proceed).await;
    let inline_read = read_inline(path.as_ref());
    if let InlineRead::All(bytes) = inline_read {
        unit.spend();
        budget::charge(bytes.len());
        return Ok(bytes);
    }
    drop(unit);
    asyncify_path(path, move |path| {
        let (mut file, mut bytes) = match inline_read {
            InlineRead::Part(file, bytes) => (file, bytes),
            _ => {
                let file = File::open(path)?;
                inline::probe_mount(&file);
                (file, Vec::new())
            }
        };
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    })
    .await
}

/// Reads the whole file into a string.
///
/// # Errors
///
/// Returns the errors of [`read`], and `InvalidData` if the content is not UTF-8.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("file");
/// blitz_io::fs::write(&path, "hello").await?;
/// assert_eq!(blitz_io::fs::read_to_string(&path).await?, "hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = read(path).await?;
    String::from_utf8(bytes)
        .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why.utf8_error()))
}

/// Writes `contents` to a file, which is created, or replaced if it exists.
///
/// A blocking thread does the work. A `Vec<u8>`, a `String` or a `Bytes` is moved there; other
/// contents are copied.
///
/// # Errors
///
/// Returns an error if the file cannot be created or not be written completely (`StorageFull` and
/// others). After an error the file may exist with a part of the content.
///
/// # Cancel safety
///
/// If the future is dropped after the write has started, the file is still written. A reader may
/// see a part of the content meanwhile: for all or nothing, write to another name and
/// [`rename`](super::rename) it.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("file");
/// blitz_io::fs::write(&path, b"hello").await?;
/// assert_eq!(std::fs::read(&path)?, b"hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let contents = raw::into_owned(contents);
    asyncify_path(path, move |path| std::fs::write(path, contents)).await
}
