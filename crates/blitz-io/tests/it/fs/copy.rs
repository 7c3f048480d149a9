//! Tests `fs::copy`. The unit tests cover each method of copying, and `forced_methods` forces each
//! of them.

use std::io::ErrorKind;

use blitz_io::fs;

use crate::support::{
    runtimes::one_thread,
    temp_files::{content, file, folder, on_all_kinds_in_folder},
    watchdog,
};

#[test]
fn a_copy_is_like_its_source() {
    on_all_kinds_in_folder(|dir| async move {
        for size in [0, 1, 70_000, 5_000_000] {
            let (from, to) = (file(&dir, size), dir.join("copy"));
            assert_eq!(fs::copy(&from, &to).await?, size as u64);
            assert!(fs::read(&to).await? == content(size));
        }
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn a_copy_of_a_file_with_holes_reads_the_same() {
    use std::os::unix::fs::FileExt;

    on_all_kinds_in_folder(|dir| async move {
        let (from, to) = (dir.join("holes"), dir.join("copy"));
        let holes = std::fs::File::create(&from)?;
        holes.set_len(3 << 20)?;
        holes.write_at(b"here", 1 << 20)?;
        assert_eq!(fs::copy(&from, &to).await?, 3 << 20);
        assert!(fs::read(&to).await? == fs::read(&from).await?);
        Ok(())
    });
}

#[test]
fn a_copy_that_fails_returns_an_error() {
    on_all_kinds_in_folder(|dir| async move {
        let from = file(&dir, 3);
        let error = fs::copy(&from, dir.join("no/such")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(fs::copy(dir.join("none"), dir.join("to")).await.is_err());
        assert!(!fs::try_exists(dir.join("to")).await?);
        #[cfg(target_os = "linux")]
        {
            let error = fs::copy(&from, &from).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert_eq!(fs::read(&from).await?, content(3));
        }
        Ok(())
    });
}

/// The copy's modification time is updated even if the file was empty before and after.
#[test]
fn a_copy_of_nothing_onto_nothing_is_a_change_all_the_same() {
    let _watch = watchdog::start();
    let dir = folder();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    std::fs::write(&from, "").unwrap();
    let target = std::fs::File::create(&to).unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    target.set_modified(long_ago).unwrap();
    one_thread().block_on(async { fs::copy(&from, &to).await }).unwrap();
    assert_ne!(target.metadata().unwrap().modified().unwrap(), long_ago);
}
