//! Tests that errors of `fs` are those of the operating system, with the kind and the number that
//! std reports.

use std::{fs as std_fs, io};

use blitz_io::fs::{self, File};

#[cfg(unix)]
use crate::support::temp_files::file;
use crate::support::temp_files::on_all_kinds_in_folder;

/// Asserts that both results are errors, with the same kind and number.
#[track_caller]
fn like<T, U>(result: io::Result<T>, std: io::Result<U>) {
    let (Err(error), Err(expected)) = (result, std) else { panic!("it did not fail") };
    assert!(expected.raw_os_error().is_some(), "{expected:?}");
    assert_eq!(error.raw_os_error(), expected.raw_os_error(), "{error:?}");
    assert_eq!(error.kind(), expected.kind(), "{error:?}");
}

#[test]
fn everything_that_takes_a_path_fails_with_the_systems_number() {
    on_all_kinds_in_folder(|dir| async move {
        let none = &*dir.join("none");
        like(fs::read(none).await, std_fs::read(none));
        like(fs::read_to_string(none).await, std_fs::read_to_string(none));
        like(File::open(none).await, std_fs::File::open(none));
        like(File::create(none.join("x")).await, std_fs::File::create(none.join("x")));
        like(fs::write(none.join("x"), "").await, std_fs::write(none.join("x"), ""));
        like(fs::metadata(none).await, std_fs::metadata(none));
        like(fs::symlink_metadata(none).await, std_fs::symlink_metadata(none));
        like(fs::canonicalize(none).await, std_fs::canonicalize(none));
        like(fs::read_dir(none).await, std_fs::read_dir(none));
        like(fs::read_link(none).await, std_fs::read_link(none));
        like(fs::remove_file(none).await, std_fs::remove_file(none));
        like(fs::remove_dir(none).await, std_fs::remove_dir(none));
        like(fs::remove_dir_all(none).await, std_fs::remove_dir_all(none));
        like(fs::create_dir(none.join("x")).await, std_fs::create_dir(none.join("x")));
        let builder = fs::DirBuilder::new();
        like(builder.create(none.join("x")).await, std_fs::create_dir(none.join("x")));
        let perm = fs::metadata(&dir).await?.permissions();
        like(fs::set_permissions(none, perm.clone()).await, std_fs::set_permissions(none, perm));
        let to = dir.join("to");
        like(fs::rename(none, &to).await, std_fs::rename(none, &to));
        like(fs::hard_link(none, &to).await, std_fs::hard_link(none, &to));
        like(fs::copy(none, &to).await, std_fs::copy(none, &to));
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn errors_have_the_same_number_as_those_of_std() {
    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 1);
        like(fs::create_dir_all(path.join("x")).await, std_fs::create_dir_all(path.join("x")));
        like(fs::try_exists(path.join("x")).await, std_fs::exists(path.join("x")));
        like(fs::create_dir(&path).await, std_fs::create_dir(&path));
        like(File::create_new(&path).await, std_fs::File::create_new(&path));
        like(fs::symlink("x", &path).await, std::os::unix::fs::symlink("x", &path));
        like(fs::read_link(&path).await, std_fs::read_link(&path));
        // `ENOTEMPTY`, `ENOTDIR`, `EISDIR`, and `ELOOP`, which has no kind.
        like(fs::remove_dir(&dir).await, std_fs::remove_dir(&dir));
        like(fs::rename(&dir, &path).await, std_fs::rename(&dir, &path));
        like(fs::remove_file(&dir).await, std_fs::remove_file(&dir));
        let circle = dir.join("circle");
        fs::symlink(&circle, &circle).await?;
        like(fs::read(&circle).await, std_fs::read(&circle));
        let entry = fs::read_dir(&dir).await?.next_entry().await?.unwrap();
        fs::remove_file(entry.path()).await?;
        like(entry.metadata().await, std_fs::symlink_metadata(entry.path()));
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn a_directory_is_no_file() {
    on_all_kinds_in_folder(|dir| async move {
        like(fs::read(&dir).await, std_fs::read(&dir));
        like(File::create(&dir).await, std_fs::File::create(&dir));
        like(fs::write(&dir, "x").await, std_fs::write(&dir, "x"));
        let mut opened = File::open(&dir).await?;
        let error = blitz_io::io::AsyncReadExt::read(&mut opened, &mut [0; 8]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EISDIR));
        let path = file(&dir, 1);
        like(fs::read_dir(&path).await, std_fs::read_dir(&path));
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn zeros_in_a_path_are_refused() {
    on_all_kinds_in_folder(|dir| async move {
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
        }
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn names_that_are_too_long_are_refused() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("x".repeat(300));
        let error = fs::read(&path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidFilename, "{error}");
        // A path that is too long for an inline open is still opened.
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
