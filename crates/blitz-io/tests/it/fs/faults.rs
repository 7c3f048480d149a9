//! Tests files on a full disk, in a read-only directory and in a directory that vanishes.

use std::{ffi::CString, io::ErrorKind, os::unix::ffi::OsStrExt, path::Path};

use blitz_io::{
    fs::{self, File},
    io::AsyncWriteExt,
};

use crate::support::{
    child,
    runtimes::one_thread,
    temp_files::{content, file, folder, on_all_kinds_in_folder},
    watchdog,
};

/// Mounts a file system of one mebibyte at `at`, in a mount namespace of this process. Returns
/// `false` if the system does not permit it.
fn mount_small(at: &Path, flags: libc::c_ulong) -> bool {
    let at = CString::new(at.as_os_str().as_bytes()).unwrap();
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: `unshare` takes no pointers, and the strings for `mount` end with a zero byte.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast())
                == 0
            && libc::mount(
                c"tmpfs".as_ptr(),
                at.as_ptr(),
                c"tmpfs".as_ptr(),
                flags,
                c"size=1m".as_ptr().cast(),
            ) == 0
    }
}

/// Unmounts the file system at `at`.
fn unmount(at: &Path) {
    let at = CString::new(at.as_os_str().as_bytes()).unwrap();
    // SAFETY: `at` ends with a zero byte.
    unsafe { libc::umount2(at.as_ptr(), libc::MNT_DETACH) };
}

#[test]
fn a_full_disk_is_reported() {
    const NAME: &str = "fs::faults::a_full_disk_is_reported";
    if child::role().is_none() {
        let _watch = watchdog::start();
        child::succeed(&mut child::command(NAME, "mounts"));
        return;
    }
    let dir = folder();
    // The threads of the test harness keep their old mounts, so everything is done on this thread
    // and on threads that it starts.
    if !mount_small(dir.path(), 0) {
        return println!("skipped: the system does not let us mount");
    }
    let (full, source) = (dir.path().join("full"), folder());
    let source = file(source.path(), 3 << 20);
    one_thread().block_on(async {
        let error = fs::write(&full, content(3 << 20)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        let written = std::fs::metadata(&full).unwrap().len();
        assert!(written > 0 && written < 3 << 20, "{written}: a part is there, as is documented");
        fs::remove_file(&full).await.unwrap();

        // In several writes: the write after the one that failed returns the error.
        let mut opened = File::create(&full).await.unwrap();
        let mut taken = 0;
        let error = loop {
            match opened.write(&content(100_000)).await {
                Ok(count) => taken += count,
                Err(error) => break error,
            }
            assert!(taken < 3 << 20, "the full disk was not reported");
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        // There is room again, so writes succeed.
        opened.set_len(0).await.unwrap();
        opened.flush().await.unwrap();
        opened.write_all(b"fits").await.unwrap();
        opened.flush().await.unwrap();
        fs::remove_file(&full).await.unwrap();

        let error = fs::copy(&source, &full).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    });
    unmount(dir.path());
}

#[test]
fn a_read_only_file_system_is_reported() {
    const NAME: &str = "fs::faults::a_read_only_file_system_is_reported";
    if child::role().is_none() {
        let _watch = watchdog::start();
        child::succeed(&mut child::command(NAME, "mounts"));
        return;
    }
    let dir = folder();
    if !mount_small(dir.path(), libc::MS_RDONLY) {
        return println!("skipped: the system does not let us mount");
    }
    let path = dir.path().join("file");
    one_thread().block_on(async {
        for error in [
            fs::write(&path, "x").await.unwrap_err(),
            File::create(&path).await.map(drop).unwrap_err(),
            fs::create_dir(&path).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem, "{error}");
            assert_eq!(error.raw_os_error(), Some(libc::EROFS));
        }
    });
    unmount(dir.path());
}

#[test]
fn operations_without_permission_return_an_error() {
    use std::os::unix::fs::PermissionsExt;

    on_all_kinds_in_folder(|dir| async move {
        let path = file(&dir, 3);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o0))?;
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o500))?;
        if std::fs::read(&path).is_ok() {
            println!("skipped: this user may do everything");
        } else {
            for error in [
                fs::read(&path).await.unwrap_err(),
                File::open(&path).await.map(drop).unwrap_err(),
                fs::write(dir.join("new"), "x").await.unwrap_err(),
                fs::remove_file(&path).await.unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
                assert_eq!(error.raw_os_error(), Some(libc::EACCES));
            }
        }
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o700))
    });
}

#[test]
fn a_folder_that_vanishes_takes_its_names_and_not_its_open_files() {
    on_all_kinds_in_folder(|dir| async move {
        let sub = dir.join("sub");
        fs::create_dir(&sub).await?;
        let path = file(&sub, 1000);
        let mut opened = File::options().read(true).write(true).open(&path).await?;
        let mut entries = fs::read_dir(&sub).await?;
        fs::remove_dir_all(&sub).await?;
        assert_eq!(fs::read(&path).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(File::create(&path).await.map(drop).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::write(&path, "x").await.unwrap_err().kind(), ErrorKind::NotFound);
        let mut all = Vec::new();
        blitz_io::io::AsyncReadExt::read_to_end(&mut opened, &mut all).await?;
        assert!(all == content(1000));
        opened.write_all(b"still").await?;
        opened.flush().await?;
        assert_eq!(opened.metadata().await?.len(), 1005);
        // The entry was read ahead while the directory existed.
        assert_eq!(entries.next_entry().await?.unwrap().file_name(), "file-1000");
        assert!(entries.next_entry().await?.is_none());
        Ok(())
    });
}
