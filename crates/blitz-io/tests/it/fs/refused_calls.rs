//! Tests system calls that the kernel refuses, each in a process of its own: which fallback is used
//! then, and which errors are returned in the middle of it.

use std::{
    io::{ErrorKind, SeekFrom},
    os::fd::AsRawFd,
};

use blitz_io::{
    buf::OwnedBuf,
    fs::{self, File, OpenOptions},
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
};

use crate::support::{
    child,
    runtimes::one_thread,
    syscall_filter::refuse,
    temp_files::{content, file, folder},
    watchdog,
};

/// Runs `test` in one child process for each role.
fn in_child(name: &str, roles: &[&str], test: impl Fn(&str)) {
    if let Some(role) = child::role() {
        return test(&role);
    }
    let _watch = watchdog::start();
    for role in roles {
        child::succeed(&mut child::command(name, role));
    }
}

/// Performs every operation that may be tried inline, and copies.
async fn everything() {
    let dir = folder();
    let path = file(dir.path(), 200_000);
    for _ in 0..2 {
        assert!(fs::read(&path).await.unwrap() == content(200_000));
        let mut opened = File::open(&path).await.unwrap();
        let mut all = Vec::new();
        opened.read_to_end(&mut all).await.unwrap();
        assert!(all == content(200_000));
        assert_eq!(opened.seek(SeekFrom::Start(9)).await.unwrap(), 9);
        assert_eq!(opened.read_u8().await.unwrap(), 9);
        assert_eq!(opened.metadata().await.unwrap().len(), 200_000);
        let (result, buf) = opened.read_exact_at_owned(vec![0; 5].slice(..), 7).await;
        result.unwrap();
        assert_eq!(buf.as_slice(), &content(12)[7..]);
        let (result, bufs) = opened.read_vectored_at_owned(vec![vec![0; 3], vec![0; 3]], 7).await;
        assert_eq!(result.unwrap(), 6);
        assert_eq!(bufs.concat(), content(13)[7..]);
        let copy = dir.path().join("copy");
        assert_eq!(fs::copy(&path, &copy).await.unwrap(), 200_000);
        assert!(fs::read(&copy).await.unwrap() == content(200_000));
        assert_eq!(
            fs::read(dir.path().join("none")).await.unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
}

#[test]
fn without_a_call_everything_is_as_it_was() {
    let calls = [
        ("preadv2", libc::SYS_preadv2),
        ("openat2", libc::SYS_openat2),
        ("statx", libc::SYS_statx),
        ("copy_file_range", libc::SYS_copy_file_range),
        ("ioctl", libc::SYS_ioctl),
        ("fstatfs", libc::SYS_fstatfs),
    ];
    let errors =
        [libc::ENOSYS, libc::EPERM, libc::EINVAL, libc::EOPNOTSUPP, libc::EAGAIN, libc::EXDEV];
    let roles: Vec<_> = calls
        .iter()
        .flat_map(|(call, _)| errors.map(|errno| format!("{call} {errno}")))
        // std returns other errors of these calls to its caller.
        .filter(|role| !role.starts_with("statx") || role.ends_with(&format!(" {}", libc::ENOSYS)))
        .filter(|role| {
            !role.starts_with("preadv2") || !role.ends_with(&format!(" {}", libc::EXDEV))
        })
        .collect();
    let roles: Vec<_> = roles.iter().map(String::as_str).collect();
    in_child("fs::refused_calls::without_a_call_everything_is_as_it_was", &roles, |role| {
        let (call, errno) = role.split_once(' ').unwrap();
        let (_, call) = calls.iter().find(|(name, _)| *name == call).unwrap();
        if !refuse(*call, None, errno.parse().unwrap()) {
            return println!("skipped: the system lets us refuse nothing");
        }
        one_thread().block_on(everything());
    });
}

/// The error of a failed write is returned once, with its number, by the next write or flush.
#[test]
fn a_failed_write_returns_its_error_once() {
    in_child(
        "fs::refused_calls::a_failed_write_returns_its_error_once",
        &["write", "flush", "read"],
        |role| {
            let dir = folder();
            one_thread().block_on(async {
                let mut options = OpenOptions::new();
                options.read(true).write(true).create(true);
                let mut opened = options.open(dir.path().join("file")).await.unwrap();
                let fd = opened.as_raw_fd() as u32;
                if !refuse(libc::SYS_write, Some(fd), libc::EIO) {
                    return println!("skipped: the system lets us refuse nothing");
                }
                opened.write_all(b"lost").await.unwrap();
                if role == "read" {
                    // These succeed; the next write returns the error.
                    assert_eq!(opened.read(&mut [0; 4]).await.unwrap(), 0);
                    opened.sync_all().await.unwrap();
                    opened.seek(SeekFrom::Start(0)).await.unwrap();
                }
                let error = match role {
                    "flush" => opened.flush().await.unwrap_err(),
                    _ => opened.write(b"x").await.unwrap_err(),
                };
                assert_eq!(error.raw_os_error(), Some(libc::EIO));
                opened.flush().await.unwrap();
            });
        },
    );
}

#[test]
fn a_failed_read_returns_its_error() {
    in_child("fs::refused_calls::a_failed_read_returns_its_error", &["read"], |_| {
        let dir = folder();
        let path = file(dir.path(), 300_000);
        one_thread().block_on(async {
            let mut opened = File::open(&path).await.unwrap();
            let fd = opened.as_raw_fd() as u32;
            let refused = refuse(libc::SYS_preadv2, Some(fd), libc::EAGAIN)
                && refuse(libc::SYS_read, Some(fd), libc::EIO)
                && refuse(libc::SYS_pread64, Some(fd), libc::EIO);
            if !refused {
                return println!("skipped: the system lets us refuse nothing");
            }
            for _ in 0..2 {
                let error = opened.read(&mut [0; 10]).await.unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::EIO));
            }
            let (result, buf) = opened.read_at_owned(vec![1, 2], 0).await;
            assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EIO));
            assert_eq!(buf, [1, 2]);
        });
    });
}
