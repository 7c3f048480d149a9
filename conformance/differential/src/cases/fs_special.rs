//! Files that are not regular: devices, pipes, sockets, `/proc`.

use crate::probe::files::*;
use std::io::{self, Read, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

pub const CASES: &[(&str, fn())] = &[
    ("dev_full_fails_at_the_flush", dev_full_fails_at_the_flush),
    ("dev_full_fails_at_the_next_write", dev_full_fails_at_the_next_write),
    ("dev_full_and_write_all_of_several_chunks", dev_full_and_write_all_of_several_chunks),
    ("dev_full_and_other_calls", dev_full_and_other_calls),
    ("dev_zero_fills_reads_up_to_2_mib", dev_zero_fills_reads_up_to_2_mib),
    ("dev_null_reads_nothing_and_takes_all", dev_null_reads_nothing_and_takes_all),
    ("proc_files_have_length_0_and_contents", proc_files_have_length_0_and_contents),
    ("proc_files_in_single_bytes", proc_files_in_single_bytes),
    ("copy_of_a_proc_file_copies_its_contents", copy_of_a_proc_file_copies_its_contents),
    ("a_sys_file_can_be_read", a_sys_file_can_be_read),
    ("proc_self_fd_reopens_the_file", proc_self_fd_reopens_the_file),
    ("both_ends_of_a_fifo_open_each_other", both_ends_of_a_fifo_open_each_other),
    ("a_fifo_cannot_seek", a_fifo_cannot_seek),
    ("a_fifo_without_reader_is_epipe_at_the_flush", a_fifo_without_reader_is_epipe_at_the_flush),
    ("nonblocking_fifos_give_would_block_and_enxio", nonblocking_fifos_give_would_block_and_enxio),
    ("a_blocked_read_does_not_stop_the_runtime", a_blocked_read_does_not_stop_the_runtime),
    (
        "a_read_that_times_out_delivers_to_the_next_read",
        a_read_that_times_out_delivers_to_the_next_read,
    ),
    (
        "a_write_during_a_blocked_read_waits_for_the_read",
        a_write_during_a_blocked_read_waits_for_the_read,
    ),
    (
        "a_write_over_unread_socket_data_fails_to_seek_and_is_read_back",
        a_write_over_unread_socket_data_fails_to_seek_and_is_read_back,
    ),
    ("a_socket_as_a_file", a_socket_as_a_file),
    (
        "a_nonblocking_socket_as_a_file_gives_would_block",
        a_nonblocking_socket_as_a_file_gives_would_block,
    ),
    ("opening_the_path_of_a_unix_socket_is_enxio", opening_the_path_of_a_unix_socket_is_enxio),
    ("a_pipe_as_two_files", a_pipe_as_two_files),
    ("a_read_of_a_pipe_returns_what_is_there", a_read_of_a_pipe_returns_what_is_there),
    ("an_eventfd_as_a_file", an_eventfd_as_a_file),
    ("a_sealed_memfd_refuses_writes_with_eperm", a_sealed_memfd_refuses_writes_with_eperm),
    (
        "a_pty_translates_line_ends_from_slave_to_master",
        a_pty_translates_line_ends_from_slave_to_master,
    ),
    (
        "a_pty_master_reads_eio_after_the_slave_is_closed",
        a_pty_master_reads_eio_after_the_slave_is_closed,
    ),
    (
        "a_pty_slave_reads_the_end_after_the_master_is_closed",
        a_pty_slave_reads_the_end_after_the_master_is_closed,
    ),
    ("a_canonical_pty_gives_one_line_per_read", a_canonical_pty_gives_one_line_per_read),
    ("a_directory_as_a_file", a_directory_as_a_file),
    ("an_o_path_descriptor_is_ebadf", an_o_path_descriptor_is_ebadf),
    (
        "the_file_size_limit_is_efbig_after_a_partial_write",
        the_file_size_limit_is_efbig_after_a_partial_write,
    ),
    (
        "a_stdin_like_descriptor_can_be_read_as_a_file",
        a_stdin_like_descriptor_can_be_read_as_a_file,
    ),
];

use tokio::fs::{self, File, OpenOptions};

async fn rw(p: &str) -> File {
    OpenOptions::new().read(true).write(true).create(true).open(p).await.unwrap()
}

fn mkfifo(p: &str) {
    let c = std::ffi::CString::new(p).unwrap();
    // SAFETY: what the pointers lead to is valid for the call.
    assert_eq!(unsafe { libc::mkfifo(c.as_ptr(), 0o600) }, 0);
}

fn pair() -> (File, std::os::unix::net::UnixStream) {
    let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    (File::from(OwnedFd::from(a)), b)
}

/// Opens a pty: the master and the slave, the slave raw or not.
fn pty(raw: bool) -> (OwnedFd, OwnedFd) {
    // SAFETY: the pointers are to locals that outlive the calls; the name is terminated by
    // `ptsname_r`, a `termios` of zeros is valid, and both descriptors are open and have no other
    // owner.
    unsafe {
        let m = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(m >= 0);
        assert_eq!(libc::grantpt(m), 0);
        assert_eq!(libc::unlockpt(m), 0);
        let mut name = [0 as libc::c_char; 100];
        assert_eq!(libc::ptsname_r(m, name.as_mut_ptr(), 100), 0);
        let s = libc::open(name.as_ptr(), libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(s >= 0);
        if raw {
            let mut t: libc::termios = std::mem::zeroed();
            libc::tcgetattr(s, &mut t);
            libc::cfmakeraw(&mut t);
            libc::tcsetattr(s, libc::TCSANOW, &t);
        }
        (OwnedFd::from_raw_fd(m), OwnedFd::from_raw_fd(s))
    }
}

fn dev_full_fails_at_the_flush() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut f = rw("/dev/full").await;
        show("write", f.write(b"abc").await);
        show("flush", f.flush().await);
        show("flush", f.flush().await);
        show("write", f.write(b"abc").await);
        show("shutdown", f.shutdown().await);
        show("shutdown", f.shutdown().await);
    });
}

fn dev_full_fails_at_the_next_write() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut f = rw("/dev/full").await;
        for _ in 0..4 {
            show("write", f.write(b"abc").await);
        }
        show("write_all", f.write_all(b"abc").await);
        show("write_all", f.write_all(b"abc").await);
        show("flush", f.flush().await);
    });
}

fn dev_full_and_write_all_of_several_chunks() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut f = rw("/dev/full").await;
        f.set_max_buf_size(4);
        show("write_all 4", f.write_all(b"0123").await);
        show("flush", f.flush().await);
        show("write_all 5", f.write_all(b"01234").await);
        show("flush", f.flush().await);
        show("write_all 3 MiB", {
            let mut f = rw("/dev/full").await;
            f.write_all(&vec![0; 3 << 20]).await
        });
    });
}

fn dev_full_and_other_calls() {
    let rt = runtime(0);
    rt.block_on(async {
        show("fs::write", fs::write("/dev/full", "abc").await);
        show("fs::write of nothing", fs::write("/dev/full", "").await);
        show("copy onto", fs::copy("/proc/sys/kernel/ostype", "/dev/full").await.map(|_| ()));
        let mut f = rw("/dev/full").await;
        show("read", f.read(&mut [1; 10]).await);
        show("seek", f.seek(SeekFrom::Start(100)).await);
        show("write", f.write(b"x").await);
        show("sync_all", f.sync_all().await);
        show("set_len", f.set_len(0).await);
        show("flush", f.flush().await);
        let mut w = tokio::io::BufWriter::new(rw("/dev/full").await);
        show("buffered write", w.write_all(b"x").await);
        show("buffered flush", w.flush().await);
        show("buffered flush again", w.flush().await);
        show("io copy", tokio::io::copy(&mut &b"abc"[..], &mut rw("/dev/full").await).await);
    });
}

fn dev_zero_fills_reads_up_to_2_mib() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut f = File::open("/dev/zero").await.unwrap();
        for n in [1usize, 4095, 65536, 256 << 10, 2 << 20, 3 << 20] {
            let mut b = vec![1; n];
            let r = f.read(&mut b).await.unwrap();
            println!("{n}: {r} zero {}", b[..r].iter().all(|x| *x == 0));
        }
        show("exact", f.read_exact(&mut vec![1; 3 << 20]).await);
        let mut v = Vec::new();
        show("take", f.take(100_001).read_to_end(&mut v).await);
    });
}

fn dev_null_reads_nothing_and_takes_all() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut f = rw("/dev/null").await;
        show("read", f.read(&mut [0; 10]).await);
        show("write", f.write(&[0; 10]).await);
        show("flush", f.flush().await);
        show("seek", f.seek(SeekFrom::Start(100)).await);
        show("end", f.seek(SeekFrom::End(5)).await);
        show("set_len", f.set_len(3).await);
        show("sync_all", f.sync_all().await);
        let t = f.metadata().await.unwrap().file_type();
        println!("char {} file {}", t.is_char_device(), t.is_file());
        show("fs::read", fs::read("/dev/null").await);
        show("fs::write", fs::write("/dev/null", "abc").await);
        show("create", File::create("/dev/null").await.map(|_| ()));
        show("create_new", File::create_new("/dev/null").await.map(|_| ()));
    });
}

fn proc_files_have_length_0_and_contents() {
    let rt = runtime(0);
    rt.block_on(async {
        show("read", fs::read_to_string("/proc/sys/kernel/ostype").await);
        println!("{}", fs::metadata("/proc/sys/kernel/ostype").await.unwrap().len());
        let mut f = File::open("/proc/sys/kernel/ostype").await.unwrap();
        let mut v = Vec::new();
        show("to end", f.read_to_end(&mut v).await);
        show("seek", f.seek(SeekFrom::Start(2)).await);
        let mut b = [0; 10];
        show("read", f.read(&mut b).await);
        println!("{:?}", String::from_utf8_lossy(&b[..4]));
        show("end", f.seek(SeekFrom::End(0)).await.map(|_| ()));
        println!(
            "{}",
            fs::read_to_string("/proc/version").await.unwrap().starts_with("Linux version")
        );
        let mut f = File::open("/proc/self/stat").await.unwrap();
        show("set_len", f.set_len(0).await);
        show("write", f.write(b"x").await);
        show("flush", f.flush().await);
    });
}

fn proc_files_in_single_bytes() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut f = File::open("/proc/sys/kernel/ostype").await.unwrap();
        let mut s = String::new();
        loop {
            let mut b = [0; 1];
            if f.read(&mut b).await.unwrap() == 0 {
                break;
            }
            s.push(b[0] as char);
        }
        println!("{s:?}");
        let a = fs::read("/proc/self/maps").await.unwrap();
        println!("maps {}", a.ends_with(b"\n") && a.len() > 1000);
        let l = fs::read_to_string("/proc/self/limits").await.unwrap();
        println!("{}", l.starts_with("Limit"));
    });
}

fn copy_of_a_proc_file_copies_its_contents() {
    let rt = runtime(2);
    rt.block_on(async {
        show("copy", fs::copy("/proc/sys/kernel/ostype", "o").await);
        show("read", fs::read_to_string("o").await);
        println!("{:o}", fs::metadata("o").await.unwrap().mode());
    });
}

fn a_sys_file_can_be_read() {
    let rt = runtime(0);
    rt.block_on(async {
        let s = fs::read_to_string("/sys/devices/system/cpu/possible").await.unwrap();
        println!("{} {}", s.starts_with('0'), s.ends_with('\n'));
        let m = fs::metadata("/sys/devices/system/cpu/possible").await.unwrap();
        println!("{}", m.len());
        let mut f = File::open("/sys/devices/system/cpu/possible").await.unwrap();
        show("byte", f.read_u8().await);
        show("rewind", f.rewind().await);
        show("byte", f.read_u8().await);
    });
}

fn proc_self_fd_reopens_the_file() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut f = rw("f").await;
        f.write_all(b"abc").await.unwrap();
        f.flush().await.unwrap();
        let p = format!("/proc/self/fd/{}", f.as_raw_fd());
        show("read", fs::read_to_string(&p).await);
        println!("{:?}", fs::read_link(&p).await.unwrap().file_name());
        fs::remove_file("f").await.unwrap();
        show("read", fs::read_to_string(&p).await);
        println!("{:?}", fs::read_link(&p).await.unwrap().file_name());
        show("missing fd", fs::read("/proc/self/fd/9999").await);
    });
}

fn both_ends_of_a_fifo_open_each_other() {
    let rt = runtime(0);
    rt.block_on(async {
        mkfifo("p");
        let mut o = OpenOptions::new();
        o.write(true);
        let (r, w) = tokio::join!(File::open("p"), o.open("p"));
        let (mut r, mut w) = (r.unwrap(), w.unwrap());
        w.write_all(b"hello").await.unwrap();
        let mut b = [0; 10];
        show("read", r.read(&mut b).await);
        w.write_all(b"more").await.unwrap();
        w.flush().await.unwrap();
        drop(w);
        let mut s = String::new();
        show("rest", r.read_to_string(&mut s).await);
        println!("{s}");
        show("end again", r.read(&mut b).await);
    });
}

fn a_fifo_cannot_seek() {
    let rt = runtime(2);
    rt.block_on(async {
        mkfifo("p");
        let mut f = rw("p").await;
        show("seek", f.seek(SeekFrom::Start(0)).await);
        show("position", f.stream_position().await);
        show("set_len", f.set_len(0).await);
        show("sync_all", f.sync_all().await);
        let t = f.metadata().await.unwrap().file_type();
        println!("fifo {}", t.is_fifo());
        f.write_all(b"abc").await.unwrap();
        show("read", f.read(&mut [0; 10]).await);
    });
}

fn a_fifo_without_reader_is_epipe_at_the_flush() {
    let rt = runtime(1);
    rt.block_on(async {
        mkfifo("p");
        let r =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("p").await.unwrap();
        let mut w = OpenOptions::new().write(true).open("p").await.unwrap();
        w.write_all(b"x").await.unwrap();
        show("flush", w.flush().await);
        drop(r);
        show("write", w.write(b"x").await);
        show("flush", w.flush().await);
        show("write", w.write(b"x").await);
        show("write", w.write(b"x").await);
        show("flush", w.flush().await);
    });
}

fn nonblocking_fifos_give_would_block_and_enxio() {
    let rt = runtime(0);
    rt.block_on(async {
        mkfifo("p");
        show(
            "no reader",
            OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open("p")
                .await
                .map(|_| ()),
        );
        let mut r =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("p").await.unwrap();
        show("no writer", r.read(&mut [0; 4]).await);
        let mut w =
            OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open("p").await.unwrap();
        show("no data", r.read(&mut [0; 4]).await);
        show("write", w.write(b"ab").await);
        show("flush", w.flush().await);
        show("data", r.read(&mut [0; 4]).await);
        show("big write", w.write(&vec![0; 1 << 20]).await);
        show("flush", w.flush().await);
        show("some", r.read(&mut [0; 100]).await);
    });
}

fn a_blocked_read_does_not_stop_the_runtime() {
    for n in [0, 1, 4] {
        let rt = runtime(n);
        rt.block_on(async {
            let (mut f, mut peer) = pair();
            let j = tokio::spawn(async move {
                let mut b = [0; 10];
                f.read(&mut b).await.unwrap()
            });
            sleep(Duration::from_millis(50)).await;
            println!("finished {}", j.is_finished());
            peer.write_all(b"abc").unwrap();
            println!("{}", j.await.unwrap());
        });
    }
}

fn a_read_that_times_out_delivers_to_the_next_read() {
    let rt = runtime(2);
    rt.block_on(async {
        let (mut f, mut peer) = pair();
        let mut b = [0; 10];
        println!("timed out {}", timeout(Duration::from_millis(50), f.read(&mut b)).await.is_err());
        peer.write_all(b"abcdef").unwrap();
        show("read 4", f.read(&mut b[..4]).await);
        show("read 4", f.read(&mut b[4..8]).await);
        println!("{}", String::from_utf8_lossy(&b[..6]));
    });
}

fn a_write_during_a_blocked_read_waits_for_the_read() {
    let rt = runtime(1);
    rt.block_on(async {
        let (mut f, mut peer) = pair();
        println!("{}", timeout(Duration::from_millis(30), f.read(&mut [0; 10])).await.is_err());
        println!("{}", timeout(Duration::from_millis(50), f.write(b"x")).await.is_err());
        println!("{}", timeout(Duration::from_millis(30), f.flush()).await.is_err());
        println!("{}", timeout(Duration::from_millis(30), f.sync_all()).await.is_err());
        show("metadata", timeout(Duration::from_secs(2), f.metadata()).await.unwrap().map(|_| ()));
        peer.write_all(b"a").unwrap();
        show("byte", f.read_u8().await);
        show("write", f.write(b"x").await);
        show("flush", f.flush().await);
        let mut b = [0; 4];
        show("peer", peer.read(&mut b));
    });
}

fn a_write_over_unread_socket_data_fails_to_seek_and_is_read_back() {
    let rt = runtime(0);
    rt.block_on(async {
        let (mut f, mut peer) = pair();
        println!("{}", timeout(Duration::from_millis(30), f.read(&mut [0; 10])).await.is_err());
        peer.write_all(b"abcdef").unwrap();
        show("byte", f.read_u8().await);
        show("write", f.write(b"XYZ").await);
        show("flush", f.flush().await);
        let mut b = [0; 10];
        peer.write_all(b"next").unwrap();
        let n = f.read(&mut b).await.unwrap();
        println!("{:?}", String::from_utf8_lossy(&b[..n]));
        drop(f);
        let mut v = Vec::new();
        show("peer", peer.read_to_end(&mut v));
    });
}

fn a_socket_as_a_file() {
    let rt = runtime(2);
    rt.block_on(async {
        let (mut f, mut peer) = pair();
        f.write_all(b"hello").await.unwrap();
        f.flush().await.unwrap();
        let mut b = [0; 5];
        peer.read_exact(&mut b).unwrap();
        println!("{}", String::from_utf8_lossy(&b));
        show("seek", f.seek(SeekFrom::Start(0)).await);
        show("set_len", f.set_len(0).await);
        show("sync_all", f.sync_all().await);
        println!("socket {}", f.metadata().await.unwrap().file_type().is_socket());
        peer.write_all(b"ab").unwrap();
        drop(peer);
        show("read", f.read(&mut b).await);
        show("end", f.read(&mut b).await);
        show("write", f.write(b"x").await);
        show("flush", f.flush().await);
    });
}

fn a_nonblocking_socket_as_a_file_gives_would_block() {
    let rt = runtime(1);
    rt.block_on(async {
        let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        let mut f = File::from(OwnedFd::from(a));
        show("read", f.read(&mut [0; 4]).await);
        show("read", f.read(&mut [0; 4]).await);
        show("write", f.write(&vec![0; 2 << 20]).await);
        show("flush", f.flush().await);
        drop(b);
    });
}

fn opening_the_path_of_a_unix_socket_is_enxio() {
    let rt = runtime(0);
    rt.block_on(async {
        let _l = std::os::unix::net::UnixListener::bind("s").unwrap();
        show("open", File::open("s").await.map(|_| ()));
        show("read", fs::read("s").await);
        show("write", fs::write("s", "x").await);
        show("copy", fs::copy("s", "t").await);
        show("exists", fs::try_exists("s").await);
        println!("socket {}", fs::metadata("s").await.unwrap().file_type().is_socket());
        show("remove", fs::remove_file("s").await);
    });
}

fn a_pipe_as_two_files() {
    let rt = runtime(2);
    rt.block_on(async {
        let (r, w) = io::pipe().unwrap();
        let mut r = File::from(OwnedFd::from(r));
        let mut w = File::from(OwnedFd::from(w));
        let j = tokio::spawn(async move {
            let mut v = Vec::new();
            let n = r.read_to_end(&mut v).await.unwrap();
            (n, v == pattern(500_000))
        });
        w.write_all(&pattern(500_000)).await.unwrap();
        w.flush().await.unwrap();
        drop(w);
        println!("{:?}", j.await.unwrap());
    });
}

fn a_read_of_a_pipe_returns_what_is_there() {
    let rt = runtime(0);
    rt.block_on(async {
        let (r, mut w) = io::pipe().unwrap();
        let mut r = File::from(OwnedFd::from(r));
        w.write_all(b"abc").unwrap();
        w.write_all(b"defg").unwrap();
        show("read", r.read(&mut [0; 100]).await);
        w.write_all(&[1; 5000]).unwrap();
        show("read", r.read(&mut [0; 4096]).await);
        show("read", r.read(&mut [0; 4096]).await);
        show("write on the reading end", r.write(b"x").await);
        show("flush", r.flush().await);
        drop(w);
        show("end", r.read(&mut [0; 4096]).await);
    });
}

fn an_eventfd_as_a_file() {
    let rt = runtime(1);
    rt.block_on(async {
        // SAFETY: the descriptor is open and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
        let mut f = File::from(fd);
        f.write_u64_ne(5).await.unwrap();
        f.write_u64_ne(6).await.unwrap();
        f.flush().await.unwrap();
        show("read", f.read_u64_ne().await);
        println!(
            "empty blocks {}",
            timeout(Duration::from_millis(30), f.read(&mut [0; 8])).await.is_err()
        );
        // SAFETY: what the pointers lead to is valid for the call.
        let c = unsafe { libc::write(f.as_raw_fd(), &7u64 as *const u64 as *const _, 8) };
        println!("{c}");
        show("read", f.read_u64_ne().await);
        f.write_u64_ne(1).await.unwrap();
        show("short read", f.read(&mut [0; 4]).await);
    });
}

trait NativeU64 {
    async fn write_u64_ne(&mut self, v: u64) -> io::Result<()>;
    async fn read_u64_ne(&mut self) -> io::Result<u64>;
}

impl NativeU64 for File {
    async fn write_u64_ne(&mut self, v: u64) -> io::Result<()> {
        self.write_all(&v.to_ne_bytes()).await
    }
    async fn read_u64_ne(&mut self) -> io::Result<u64> {
        let mut b = [0; 8];
        let n = self.read(&mut b).await?;
        assert_eq!(n, 8);
        Ok(u64::from_ne_bytes(b))
    }
}

fn a_sealed_memfd_refuses_writes_with_eperm() {
    let rt = runtime(2);
    rt.block_on(async {
        // SAFETY: what the pointers lead to is valid for the call.
        let fd = unsafe {
            libc::memfd_create(c"m".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        let mut f = unsafe { File::from_raw_fd(fd) };
        f.write_all(b"0123").await.unwrap();
        f.flush().await.unwrap();
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_GROW | libc::F_SEAL_SHRINK) };
        show("grow", f.set_len(5).await);
        show("shrink", f.set_len(1).await);
        show("append", f.write(b"x").await);
        show("flush", f.flush().await);
        f.rewind().await.unwrap();
        show("overwrite", f.write(b"AB").await);
        show("flush", f.flush().await);
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
        show("overwrite", f.write(b"CD").await);
        show("flush", f.flush().await);
        f.rewind().await.unwrap();
        let mut s = String::new();
        f.read_to_string(&mut s).await.unwrap();
        println!("{s}");
    });
}

fn a_pty_translates_line_ends_from_slave_to_master() {
    let rt = runtime(0);
    rt.block_on(async {
        let (m, s) = pty(false);
        let mut m = File::from(m);
        let mut s = File::from(s);
        s.write_all(b"hi\n").await.unwrap();
        s.flush().await.unwrap();
        let mut b = [0; 20];
        let n = m.read(&mut b).await.unwrap();
        println!("{:?}", String::from_utf8_lossy(&b[..n]));
        m.write_all(b"line\n").await.unwrap();
        m.flush().await.unwrap();
        let n = s.read(&mut b).await.unwrap();
        println!("{:?}", String::from_utf8_lossy(&b[..n]));
        let mut echo = Vec::new();
        while echo.len() < 6 {
            let n = m.read(&mut b).await.unwrap();
            echo.extend(&b[..n]);
        }
        println!("{:?}", String::from_utf8_lossy(&echo));
        show("seek", m.seek(SeekFrom::Start(0)).await);
        show("set_len", m.set_len(0).await);
        println!("char {}", m.metadata().await.unwrap().file_type().is_char_device());
    });
}

fn a_pty_master_reads_eio_after_the_slave_is_closed() {
    let rt = runtime(2);
    rt.block_on(async {
        let (m, s) = pty(true);
        let mut m = File::from(m);
        let mut s = File::from(s);
        s.write_all(b"bye").await.unwrap();
        s.flush().await.unwrap();
        drop(s);
        let mut b = [0; 20];
        show("read", m.read(&mut b).await);
        show("read", m.read(&mut b).await);
        show("read", m.read(&mut b).await);
        show("to end", m.read_to_end(&mut Vec::new()).await);
    });
}

fn a_pty_slave_reads_the_end_after_the_master_is_closed() {
    let rt = runtime(1);
    rt.block_on(async {
        let (m, s) = pty(true);
        let m = File::from(m);
        let mut s = File::from(s);
        drop(m);
        show("read", s.read(&mut [0; 20]).await);
        show("write", s.write(b"x").await);
        show("flush", s.flush().await);
    });
}

fn a_canonical_pty_gives_one_line_per_read() {
    let rt = runtime(0);
    rt.block_on(async {
        let (m, s) = pty(false);
        let mut m = File::from(m);
        let mut s = File::from(s);
        m.write_all(b"one\ntwo\nthree").await.unwrap();
        m.flush().await.unwrap();
        let mut b = [0; 20];
        show("read", s.read(&mut b).await);
        show("short", s.read(&mut b[..2]).await);
        show("rest", s.read(&mut b).await);
        println!("pending {}", timeout(Duration::from_millis(50), s.read(&mut b)).await.is_err());
        m.write_all(b"\x04").await.unwrap();
        m.flush().await.unwrap();
        show("by end of file", s.read(&mut b).await);
        m.write_all(b"\x04").await.unwrap();
        m.flush().await.unwrap();
        show("end of file", s.read(&mut b).await);
    });
}

fn a_directory_as_a_file() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::create_dir("d").unwrap();
        let mut f = File::open("d").await.unwrap();
        println!("dir {}", f.metadata().await.unwrap().is_dir());
        show("read", f.read(&mut [0; 10]).await);
        show("read again", f.read(&mut [0; 10]).await);
        show("to end", f.read_to_end(&mut Vec::new()).await);
        show("write", f.write(b"x").await);
        show("flush", f.flush().await);
        show("set_len", f.set_len(0).await);
        show("sync_all", f.sync_all().await);
        show("rewind", f.rewind().await);
        show("set_permissions", f.set_permissions(std::fs::Permissions::from_mode(0o700)).await);
        show("clone", f.try_clone().await.map(|_| ()));
        show("empty read", f.read(&mut []).await);
    });
}

fn an_o_path_descriptor_is_ebadf() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        // SAFETY: what the pointers lead to is valid for the call.
        let fd =
            unsafe { libc::open(c"f".as_ptr(), libc::O_RDONLY | libc::O_WRONLY | libc::O_PATH) };
        let mut f = unsafe { File::from_raw_fd(fd) };
        show("read", f.read(&mut [0; 10]).await);
        show("write", f.write(b"a").await);
        show("flush", f.flush().await);
        show("seek", f.seek(SeekFrom::Start(1)).await);
        show("sync", f.sync_all().await);
        show("set_len", f.set_len(1).await);
        show("set_permissions", f.set_permissions(std::fs::Permissions::from_mode(0o600)).await);
        show("clone", f.try_clone().await.map(|_| ()));
    });
}

fn the_file_size_limit_is_efbig_after_a_partial_write() {
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let rt = runtime(2);
    rt.block_on(async {
        let lim = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
        // SAFETY: what the pointers lead to is valid for the call.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &lim) };
        let mut f = rw("f").await;
        show("write", f.write(&vec![1; 1_500_000]).await);
        show("flush", f.flush().await);
        println!("{}", f.metadata().await.unwrap().len());
        show("write", f.write(b"x").await);
        show("write", f.write(b"x").await);
        show("position", f.stream_position().await);
        show("set_len", f.set_len(2 << 20).await);
        show("set_len less", f.set_len(10).await);
        f.rewind().await.unwrap();
        show("write", f.write(b"y").await);
        show("flush", f.flush().await);
        show("fs::write", fs::write("g", vec![1; 2_000_000]).await);
        println!("{}", std::fs::metadata("g").unwrap().len());
        show("seek", f.seek(SeekFrom::Start(5 << 20)).await);
        show("write", f.write(b"y").await);
        show("flush", f.flush().await);
        println!("{}", f.metadata().await.unwrap().len());
    });
}

fn a_stdin_like_descriptor_can_be_read_as_a_file() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "first\nsecond\n").unwrap();
        let f = std::fs::File::open("f").unwrap();
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::dup2(f.as_raw_fd(), 0) };
        let mut si = tokio::io::stdin();
        let mut s = String::new();
        show("stdin", si.read_to_string(&mut s).await);
        println!("{s:?}");
        let mut f = rw("/dev/stdin").await;
        let mut s = String::new();
        show("/dev/stdin", f.read_to_string(&mut s).await);
        println!("{s:?}");
    });
}
