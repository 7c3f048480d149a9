//! Files that are read or written whole.
//!
//! A small file that lies in the page cache is opened, read and closed where it is asked for;
//! of a larger one, or one of which something is missing, a thread reads the rest.

#![forbid(unsafe_code)]

use std::{fs::File, future::poll_fn, io, io::Read, path::Path};

use super::{
    error,
    inline::{self, Opened},
    offload::{need_runtime, on_path},
};
use crate::engine::work::task::budget;

/// What was done at once of a file that is to be read.
enum Begun {
    All(Vec<u8>),
    /// It is open, and begins like this.
    Part(File, Vec<u8>),
    Nothing,
}

fn begin(path: &Path) -> Begun {
    let Opened::File(file, size) = inline::open(path) else { return Begun::Nothing };
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if size > inline::MOST {
        return Begun::Part(file, Vec::new());
    }
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        match inline::read_to_vec(&file, &mut bytes) {
            // It was cut off since it was opened.
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => return Begun::Part(file, bytes),
        }
    }
    Begun::All(bytes)
}

/// Reads the whole file into a vector of bytes.
///
/// A local file of at most 128 KiB whose content lies in the page cache is read at once
/// (Linux); else a thread for blocking work does it. It is the file as it was at one moment
/// only if nobody writes to it meanwhile.
///
/// # Errors
///
/// If it does not exist, is a directory, may not be read, and so on; the error names the
/// path.
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
    need_runtime();
    let unit = poll_fn(budget::proceed).await;
    let begun = begin(path.as_ref());
    if let Begun::All(bytes) = begun {
        unit.spend();
        budget::charge(bytes.len());
        return Ok(bytes);
    }
    drop(unit);
    on_path("read", path, move |path| {
        let (mut file, mut bytes) = match begun {
            Begun::Part(file, bytes) => (file, bytes),
            _ => {
                let file = File::open(path)?;
                inline::learn(&file);
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
/// Those of [`read`], and `InvalidData` if the content is not UTF-8.
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
    let bytes = read(path.as_ref()).await?;
    String::from_utf8(bytes).map_err(|why| {
        let why = io::Error::new(io::ErrorKind::InvalidData, why.utf8_error());
        error::at("read as text", path.as_ref(), why)
    })
}

/// Creates a file with this content, in place of what is there.
///
/// A thread for blocking work does it, with a copy of the content.
///
/// # Errors
///
/// If the file cannot be created or not be written whole (`StorageFull` and others); the error
/// names the path. After an error the file may be there with a part of the content.
///
/// # Cancel safety
///
/// If it is dropped once begun, the file is still written. Whoever reads it meanwhile may see
/// a part: write to another name and [`rename`](super::rename) for all or nothing.
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
    let contents = contents.as_ref().to_owned();
    on_path("write", path, move |path| std::fs::write(path, contents)).await
}
