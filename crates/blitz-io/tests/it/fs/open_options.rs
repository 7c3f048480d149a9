//! Tests `OpenOptions` against the behaviour of std.

use std::io::ErrorKind;

use blitz_io::{
    fs::{self, File, OpenOptions},
    io::{AsyncReadExt, AsyncWriteExt},
};

#[cfg(unix)]
use crate::support::temp_files::file;
use crate::support::temp_files::on_all_kinds_in_folder;

#[test]
fn open_options_have_their_documented_effects() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        let none = OpenOptions::new().open(&path).await.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::InvalidInput, "no option is set");
        let missing = OpenOptions::new().write(true).open(&path).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        options.open(&path).await?.write_all(b"12345").await?;
        assert_eq!(options.open(&path).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        let mut appending = OpenOptions::new().append(true).open(&path).await?;
        appending.write_all(b"67").await?;
        appending.flush().await?;
        assert_eq!(fs::read(&path).await?, b"1234567");
        OpenOptions::new().write(true).truncate(true).open(&path).await?;
        assert_eq!(fs::read(&path).await?, b"");
        let mut std = std::fs::OpenOptions::new();
        std.read(true);
        let mut file = OpenOptions::from(std).open(&path).await?;
        assert_eq!(file.read(&mut [0; 4]).await?, 0);
        assert!(file.write_all(b"x").await.is_ok(), "a thread finds out");
        assert!(file.flush().await.is_err(), "it was not opened for writing");
        Ok(())
    });
}

#[test]
fn options_can_be_shown_and_cloned() {
    let mut options = OpenOptions::default();
    options.read(true).create(true).write(true);
    assert!(format!("{:?}", options.clone()).contains("create: true"));
}

#[test]
fn the_constructors_of_file_open_as_documented() {
    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("file");
        assert_eq!(File::open(&path).await.unwrap_err().kind(), ErrorKind::NotFound);
        File::create(&path).await?.write_all(b"x").await?;
        assert_eq!(File::create_new(&path).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        let mut both = File::create_new(dir.join("new")).await?;
        both.write_all(b"y").await?;
        assert_eq!(both.read(&mut [0; 4]).await?, 0);
        assert!(format!("{both:?}").contains("std: File"), "{both:?}");
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn modes_and_flags_are_passed_on() {
    use std::os::unix::fs::PermissionsExt;

    on_all_kinds_in_folder(|dir| async move {
        let path = dir.join("private");
        let opened = OpenOptions::new().write(true).create(true).mode(0o600).open(&path).await?;
        assert_eq!(opened.metadata().await?.permissions().mode() & 0o777, 0o600);
        fs::symlink(file(&dir, 3), dir.join("link")).await?;
        File::open(dir.join("link")).await?;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW);
        let error = options.open(dir.join("link")).await.unwrap_err();
        assert_ne!(error.kind(), ErrorKind::NotFound);
        options.open(&path).await?;
        Ok(())
    });
}

/// A file that was opened inline has the same descriptor flags as one of std's.
#[cfg(unix)]
#[test]
fn an_opened_file_is_a_plain_one() {
    use std::os::fd::AsRawFd;

    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 3);
        for _ in 0..3 {
            let (ours, std) = (File::open(&path).await?, std::fs::File::open(&path)?);
            for what in [libc::F_GETFL, libc::F_GETFD] {
                // SAFETY: both descriptors are open, and the commands take no argument.
                let [ours, std] =
                    [ours.as_raw_fd(), std.as_raw_fd()].map(|fd| unsafe { libc::fcntl(fd, what) });
                assert_eq!(ours, std);
            }
        }
        Ok(())
    });
}
