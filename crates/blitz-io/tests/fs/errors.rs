//! Errors name the operation and the path, and keep their kind and number.

use std::{io, path::Path};

use blitz_io::fs::{self, File};

use crate::place::{file, on_all};

#[track_caller]
fn names<T>(result: io::Result<T>, operation: &str, path: &Path, kind: io::ErrorKind) {
    let Err(error) = result else { panic!("`{operation}` did not fail") };
    assert_eq!(error.kind(), kind, "{error}");
    let begin = format!("cannot {operation} {path:?}");
    assert!(error.to_string().starts_with(&begin), "{error} does not begin with {begin}");
    let inner = error.get_ref().expect("it has an error inside");
    let cause = inner.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    assert_eq!(cause.expect("the system's is behind it").kind(), kind);
}

#[test]
fn everything_that_takes_a_path_names_it() {
    on_all(|dir| async move {
        let none = &*dir.join("none");
        let missing = io::ErrorKind::NotFound;
        names(fs::read(none).await, "read", none, missing);
        names(fs::read_to_string(none).await, "read", none, missing);
        names(File::open(none).await, "open", none, missing);
        names(fs::write(none.join("x"), "").await, "write", &none.join("x"), missing);
        names(fs::metadata(none).await, "look at", none, missing);
        names(fs::symlink_metadata(none).await, "look at", none, missing);
        names(fs::canonicalize(none).await, "resolve", none, missing);
        names(fs::read_dir(none).await, "read the directory", none, missing);
        names(fs::read_link(none).await, "read the link", none, missing);
        names(fs::remove_file(none).await, "remove", none, missing);
        names(fs::remove_dir(none).await, "remove the directory", none, missing);
        names(fs::remove_dir_all(none).await, "remove the directory", none, missing);
        names(
            fs::create_dir(none.join("x")).await,
            "create the directory",
            &none.join("x"),
            missing,
        );
        let below = file(&dir, 1).join("x");
        let no_directory = io::ErrorKind::NotADirectory;
        #[cfg(unix)]
        names(fs::create_dir_all(&below).await, "create the directory", &below, no_directory);
        #[cfg(unix)]
        names(fs::try_exists(&below).await, "look at", &below, no_directory);
        let _ = (below, no_directory);
        let perm = fs::metadata(&dir).await?.permissions();
        names(fs::set_permissions(none, perm).await, "change the permissions of", none, missing);
        names(fs::rename(none, dir.join("to")).await, "rename", none, missing);
        names(fs::hard_link(none, dir.join("to")).await, "link", none, missing);
        names(fs::copy(none, dir.join("to")).await, "copy", none, missing);
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn a_directory_is_no_file() {
    on_all(|dir| async move {
        names(fs::read(&dir).await, "read", &dir, io::ErrorKind::IsADirectory);
        names(File::create(&dir).await, "open", &dir, io::ErrorKind::IsADirectory);
        names(fs::write(&dir, "x").await, "write", &dir, io::ErrorKind::IsADirectory);
        let mut opened = File::open(&dir).await?;
        let error = blitz_io::io::AsyncReadExt::read(&mut opened, &mut [0; 8]).await.unwrap_err();
        assert_eq!(
            error.raw_os_error(),
            Some(libc::EISDIR),
            "an open file's error is the system's"
        );
        names(
            fs::read_dir(file(&dir, 1)).await,
            "read the directory",
            &dir.join("file-1"),
            io::ErrorKind::NotADirectory,
        );
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn zeros_in_a_path_are_refused() {
    on_all(|dir| async move {
        let path = &*dir.join("a\0b");
        for error in [
            fs::read(path).await.unwrap_err(),
            File::open(path).await.unwrap_err(),
            File::create(path).await.unwrap_err(),
            fs::write(path, "").await.unwrap_err(),
            fs::metadata(path).await.unwrap_err(),
            fs::create_dir(path).await.unwrap_err(),
            fs::remove_file(path).await.unwrap_err(),
            fs::read_dir(path).await.unwrap_err(),
            fs::copy(path, dir.join("to")).await.unwrap_err(),
            fs::rename(dir.join("x"), path).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains("a\\0b"), "{error}");
        }
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn names_that_are_too_long_are_refused() {
    on_all(|dir| async move {
        let path = dir.join("x".repeat(300));
        let error = fs::read(&path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidFilename, "{error}");
        // Longer than what is tried at once, and right.
        let mut deep = dir.clone();
        while deep.as_os_str().len() < 600 {
            deep.push("y".repeat(100));
        }
        fs::create_dir_all(&deep).await?;
        fs::write(deep.join("z"), "deep").await?;
        assert_eq!(fs::read(deep.join("z")).await?, b"deep");
        Ok(())
    });
}
