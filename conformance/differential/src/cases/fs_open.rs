//! Opening files: every combination of options, and what is refused.

use crate::probe::files::*;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

pub const CASES: &[(&str, fn())] = &[
    ("all_option_combinations_on_an_existing_file", all_option_combinations_on_an_existing_file),
    ("all_option_combinations_on_a_missing_file", all_option_combinations_on_a_missing_file),
    ("all_option_combinations_on_a_directory", all_option_combinations_on_a_directory),
    (
        "all_option_combinations_on_a_dangling_symlink",
        all_option_combinations_on_a_dangling_symlink,
    ),
    ("the_texts_of_invalid_option_errors", the_texts_of_invalid_option_errors),
    ("open_create_and_create_new_on_usual_targets", open_create_and_create_new_on_usual_targets),
    (
        "file_open_is_read_only_and_create_is_write_only",
        file_open_is_read_only_and_create_is_write_only,
    ),
    ("create_new_is_read_and_write", create_new_is_read_and_write),
    ("create_truncates_at_the_open", create_truncates_at_the_open),
    ("open_futures_do_nothing_until_polled", open_futures_do_nothing_until_polled),
    ("mode_is_masked_by_the_umask", mode_is_masked_by_the_umask),
    (
        "a_file_created_with_mode_0_is_still_writable_through_the_handle",
        a_file_created_with_mode_0_is_still_writable_through_the_handle,
    ),
    (
        "custom_flags_nofollow_directory_path_and_nonblock",
        custom_flags_nofollow_directory_path_and_nonblock,
    ),
    ("custom_flags_cannot_change_the_access_mode", custom_flags_cannot_change_the_access_mode),
    ("opened_files_are_close_on_exec_and_blocking", opened_files_are_close_on_exec_and_blocking),
    ("open_options_from_std_and_clone", open_options_from_std_and_clone),
    ("options_can_be_turned_off_again", options_can_be_turned_off_again),
    ("names_of_255_bytes_work_and_256_are_too_long", names_of_255_bytes_work_and_256_are_too_long),
    (
        "a_symlink_chain_of_41_is_a_loop_and_40_is_not",
        a_symlink_chain_of_41_is_a_loop_and_40_is_not,
    ),
    ("open_without_permission_is_eacces", open_without_permission_is_eacces),
    ("changing_what_belongs_to_root_is_refused", changing_what_belongs_to_root_is_refused),
    ("a_running_executable_is_text_busy", a_running_executable_is_text_busy),
    (
        "the_limit_of_descriptors_is_emfile_until_one_is_dropped",
        the_limit_of_descriptors_is_emfile_until_one_is_dropped,
    ),
    (
        "a_dropped_file_frees_its_descriptor_at_once_when_idle",
        a_dropped_file_frees_its_descriptor_at_once_when_idle,
    ),
    ("two_hundred_files_open_at_once", two_hundred_files_open_at_once),
    ("non_utf8_names_work", non_utf8_names_work),
];

use tokio::fs::{self, File, OpenOptions};

fn combos(target: &'static str, prepare: fn()) {
    let rt = runtime(0);
    rt.block_on(async move {
        for bits in 0..64u32 {
            prepare();
            let b = |n: u32| bits & (1 << n) != 0;
            let mut o = OpenOptions::new();
            o.read(b(0)).write(b(1)).append(b(2)).truncate(b(3)).create(b(4)).create_new(b(5));
            let mut name = String::new();
            for (i, c) in "rwatcn".chars().enumerate() {
                name.push(if b(i as u32) { c } else { '-' });
            }
            let r = o.open(target).await;
            let len = std::fs::metadata(target).map(|m| m.len()).ok();
            let len = if Path::new(target).is_dir() { None } else { len };
            match r {
                Ok(_) => println!("{name}: ok len {len:?}"),
                Err(x) => println!("{name}: err {} len {len:?}", error(&x)),
            }
        }
    });
}

fn all_option_combinations_on_an_existing_file() {
    combos("f", || std::fs::write("f", b"hello").unwrap());
}

fn all_option_combinations_on_a_missing_file() {
    combos("f", || {
        let _ = std::fs::remove_file("f");
    });
}

fn all_option_combinations_on_a_directory() {
    std::fs::create_dir("d").unwrap();
    combos("d", || {});
}

fn all_option_combinations_on_a_dangling_symlink() {
    std::os::unix::fs::symlink("target", "l").unwrap();
    combos("l", || {
        let _ = std::fs::remove_file("target");
    });
}

fn the_texts_of_invalid_option_errors() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "x").unwrap();
        text("none", OpenOptions::new().open("f").await.map(|_| ()));
        text("truncate only", OpenOptions::new().truncate(true).open("f").await.map(|_| ()));
        text(
            "append truncate",
            OpenOptions::new().append(true).truncate(true).open("f").await.map(|_| ()),
        );
        text("read create", OpenOptions::new().read(true).create(true).open("f").await.map(|_| ()));
        text(
            "read truncate",
            OpenOptions::new().read(true).truncate(true).open("f").await.map(|_| ()),
        );
        println!("{}", std::fs::read_to_string("f").unwrap());
    });
}

fn open_create_and_create_new_on_usual_targets() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::create_dir("d").unwrap();
        std::fs::write("f", "12345").unwrap();
        std::os::unix::fs::symlink("nowhere", "dangling").unwrap();
        std::os::unix::fs::symlink("loop", "loop").unwrap();
        for p in [
            "f",
            "d",
            "missing",
            "missing/x",
            "f/x",
            "f/",
            "d/",
            "dangling",
            "loop",
            "",
            ".",
            "/",
            "/dev/null/x",
        ] {
            ok(&format!("open {p:?}"), File::open(p).await);
        }
        for p in ["d", "missing/x", "f/x", "f/", "new/", "loop", "", "."] {
            ok(&format!("create {p:?}"), File::create(p).await);
        }
        for p in ["f", "d", "missing/x", "f/x", "dangling", "loop", ""] {
            ok(&format!("create_new {p:?}"), File::create_new(p).await);
        }
        println!("f has {}", std::fs::metadata("f").unwrap().len());
        ok("create through dangling", File::create("dangling").await);
        println!("nowhere exists {}", Path::new("nowhere").exists());
    });
}

fn file_open_is_read_only_and_create_is_write_only() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        show("write", f.write(b"x").await);
        show("flush", f.flush().await);
        let mut f = File::create("f").await.unwrap();
        let mut b = [0; 4];
        show("read", f.read(&mut b).await);
        show("write", f.write(b"xyz").await);
        show("flush", f.flush().await);
        println!("{:?}", std::fs::read_to_string("f"));
    });
}

fn create_new_is_read_and_write() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut f = File::create_new("f").await.unwrap();
        f.write_all(b"abc").await.unwrap();
        show("rewind", f.rewind().await);
        let mut s = String::new();
        show("read", f.read_to_string(&mut s).await);
        println!("{s}");
        show("again", File::create_new("f").await.map(|_| ()));
    });
}

fn create_truncates_at_the_open() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", vec![1u8; 5000]).unwrap();
        let f = File::create("f").await.unwrap();
        println!("{}", std::fs::metadata("f").unwrap().len());
        drop(f);
    });
}

fn open_futures_do_nothing_until_polled() {
    let rt = runtime(2);
    rt.block_on(async {
        let f = File::create("a");
        let w = fs::write("b", "x");
        let d = fs::create_dir("c");
        std::thread::sleep(Duration::from_millis(50));
        println!(
            "{} {} {}",
            Path::new("a").exists(),
            Path::new("b").exists(),
            Path::new("c").exists()
        );
        drop((f, w, d));
        std::thread::sleep(Duration::from_millis(20));
        println!(
            "{} {} {}",
            Path::new("a").exists(),
            Path::new("b").exists(),
            Path::new("c").exists()
        );
    });
}

fn mode_is_masked_by_the_umask() {
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::umask(0o027) };
    let rt = runtime(1);
    rt.block_on(async {
        for (i, mode) in [0o777u32, 0o666, 0o600, 0o000, 0o4755, 0o1777].into_iter().enumerate() {
            let p = format!("f{i}");
            let r = OpenOptions::new().write(true).create(true).mode(mode).open(&p).await;
            ok(&format!("{mode:o}"), r);
            println!("{:o}", std::fs::metadata(&p).unwrap().permissions().mode() & 0o7777);
        }
        File::create("g").await.unwrap();
        println!("create {:o}", std::fs::metadata("g").unwrap().permissions().mode() & 0o7777);
        fs::write("h", "").await.unwrap();
        println!("write {:o}", std::fs::metadata("h").unwrap().permissions().mode() & 0o7777);
        let _ = OpenOptions::new().write(true).create(true).mode(0o644).open("f2").await;
        println!(
            "existing keeps {:o}",
            std::fs::metadata("f2").unwrap().permissions().mode() & 0o7777
        );
    });
}

fn a_file_created_with_mode_0_is_still_writable_through_the_handle() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut f =
            OpenOptions::new().write(true).create_new(true).mode(0).open("f").await.unwrap();
        show("write", f.write(b"abc").await);
        show("flush", f.flush().await);
        println!("{}", f.metadata().await.unwrap().len());
    });
}

fn custom_flags_nofollow_directory_path_and_nonblock() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        std::fs::create_dir("d").unwrap();
        std::os::unix::fs::symlink("f", "l").unwrap();
        let o = |fl: i32| {
            let mut o = OpenOptions::new();
            o.read(true).custom_flags(fl);
            o
        };
        ok("nofollow link", o(libc::O_NOFOLLOW).open("l").await);
        ok("nofollow file", o(libc::O_NOFOLLOW).open("f").await);
        ok("directory on file", o(libc::O_DIRECTORY).open("f").await);
        ok("directory on dir", o(libc::O_DIRECTORY).open("d").await);
        let mut f = ok("path", o(libc::O_PATH).open("f").await).unwrap();
        let mut b = [0; 3];
        show("read of path", f.read(&mut b).await);
        show("metadata of path", f.metadata().await.map(|m| m.len()));
        ok("nonblock", o(libc::O_NONBLOCK).open("f").await);
        ok(
            "trunc by custom flag",
            OpenOptions::new().write(true).custom_flags(libc::O_TRUNC).open("f").await,
        );
        println!("{}", std::fs::metadata("f").unwrap().len());
    });
}

fn custom_flags_cannot_change_the_access_mode() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f =
            OpenOptions::new().read(true).custom_flags(libc::O_RDWR).open("f").await.unwrap();
        show("write", f.write(b"x").await);
        show("flush", f.flush().await);
        println!("{:?}", std::fs::read_to_string("f"));
        // SAFETY: the call takes numbers and no memory.
        let fl = unsafe { libc::fcntl(f.as_raw_fd(), libc::F_GETFL) };
        println!("accmode {}", fl & libc::O_ACCMODE);
    });
}

fn opened_files_are_close_on_exec_and_blocking() {
    let rt = runtime(1);
    rt.block_on(async {
        let f = File::create("f").await.unwrap();
        let fd = f.as_raw_fd();
        // SAFETY: the call takes numbers and no memory.
        println!("cloexec {}", unsafe { libc::fcntl(fd, libc::F_GETFD) } & libc::FD_CLOEXEC);
        println!("nonblock {}", unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK);
        let c = f.try_clone().await.unwrap();
        // SAFETY: the call takes numbers and no memory.
        println!(
            "clone cloexec {}",
            unsafe { libc::fcntl(c.as_raw_fd(), libc::F_GETFD) } & libc::FD_CLOEXEC
        );
        println!("another descriptor {}", c.as_raw_fd() != fd);
    });
}

fn open_options_from_std_and_clone() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut s = std::fs::OpenOptions::new();
        s.write(true).create(true);
        let o: OpenOptions = s.into();
        let o2 = o.clone();
        ok("one", o.open("a").await);
        ok("two", o2.open("b").await);
        ok("one again", o.open("c").await);
        let mut n = std::fs::read_dir(".").unwrap().count();
        println!("{n}");
        let mut o3 = o2.clone();
        o3.create_new(true);
        ok("three", o3.open("a").await);
        ok("two unchanged", o2.open("a").await);
        n = std::fs::read_dir(".").unwrap().count();
        println!("{n}");
    });
}

fn options_can_be_turned_off_again() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        ok("create off", OpenOptions::new().write(true).create(true).create(false).open("g").await);
        ok(
            "truncate off",
            OpenOptions::new().write(true).truncate(true).truncate(false).open("f").await,
        );
        ok("append off", OpenOptions::new().append(true).append(false).open("f").await);
        ok(
            "create_new off",
            OpenOptions::new().write(true).create_new(true).create_new(false).open("f").await,
        );
        println!("{}", std::fs::metadata("f").unwrap().len());
    });
}

fn names_of_255_bytes_work_and_256_are_too_long() {
    let rt = runtime(0);
    rt.block_on(async {
        ok("255", File::create("a".repeat(255)).await);
        ok("256", File::create("a".repeat(256)).await);
        ok("open 256", File::open("a".repeat(256)).await);
        ok("path of 4096", File::open("./".repeat(2048)).await);
        ok("path of 4094", File::open("./".repeat(2047)).await);
        ok("create_dir 256", fs::create_dir("a".repeat(256)).await);
        ok("try_exists 256", fs::try_exists("a".repeat(256)).await);
        ok("path of 100000", fs::metadata("x/".repeat(50000)).await);
    });
}

fn a_symlink_chain_of_41_is_a_loop_and_40_is_not() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("l0", "end").unwrap();
        for i in 1..=41 {
            std::os::unix::fs::symlink(format!("l{}", i - 1), format!("l{i}")).unwrap();
        }
        show("40", fs::read_to_string("l40").await);
        show("41", fs::read_to_string("l41").await);
    });
}

fn open_without_permission_is_eacces() {
    std::fs::create_dir("locked").unwrap();
    std::fs::write("locked/f", "x").unwrap();
    std::fs::create_dir("rodir").unwrap();
    std::fs::write("noread", "x").unwrap();
    std::fs::write("nowrite", "x").unwrap();
    for (p, m) in [("noread", 0o200), ("nowrite", 0o444), ("locked", 0o000), ("rodir", 0o555)] {
        std::fs::set_permissions(p, std::fs::Permissions::from_mode(m)).unwrap();
    }
    if !drop_root() {
        println!("needs root or user");
        return;
    }
    let rt = runtime(1);
    rt.block_on(async {
        ok("read", File::open("noread").await);
        ok("write", OpenOptions::new().write(true).open("nowrite").await);
        ok("create over", File::create("nowrite").await);
        ok("through", File::open("locked/f").await);
        ok("new in read-only dir", File::create("rodir/x").await);
        ok("create_dir", fs::create_dir("rodir/d").await);
        ok("create_dir_all", fs::create_dir_all("rodir/d/e").await);
        ok("fs::read", fs::read("noread").await);
        ok("fs::write", fs::write("nowrite", "y").await);
        ok("read_dir", fs::read_dir("locked").await);
        ok("metadata", fs::metadata("locked/f").await);
        ok("try_exists", fs::try_exists("locked/f").await);
        ok("canonicalize", fs::canonicalize("locked/f").await);
        ok("rename", fs::rename("locked/f", "g").await);
        ok("remove_file", fs::remove_file("locked/f").await);
        ok("hard_link", fs::hard_link("locked/f", "g").await);
        ok("symlink", fs::symlink("f", "rodir/l").await);
        ok("copy from", fs::copy("noread", "c").await);
        ok("copy to", fs::copy("/dev/null/../null", "c").await);
        ok("copy onto", fs::copy("/proc/sys/kernel/ostype", "nowrite").await);
    });
    std::fs::set_permissions("locked", std::fs::Permissions::from_mode(0o700)).ok();
}

fn changing_what_belongs_to_root_is_refused() {
    if !drop_root() {
        println!("needs root or user");
        return;
    }
    let rt = runtime(0);
    rt.block_on(async {
        ok("create in /", File::create("/tokio_diff_b_x").await);
        ok("create_dir in /proc", fs::create_dir("/proc/x").await.map(|_| ()));
        ok(
            "set_permissions",
            fs::set_permissions("/dev/null", std::fs::Permissions::from_mode(0o666)).await,
        );
        ok(
            "write of a sysctl",
            OpenOptions::new().write(true).open("/proc/sys/kernel/ostype").await,
        );
    });
}

fn a_running_executable_is_text_busy() {
    let rt = runtime(2);
    rt.block_on(async {
        fs::copy("/bin/sleep", "s").await.unwrap();
        let mut c = std::process::Command::new("./s").arg("100").spawn().unwrap();
        ok("write", OpenOptions::new().write(true).open("s").await);
        ok("append", OpenOptions::new().append(true).open("s").await);
        ok("create", File::create("s").await);
        ok("fs::write", fs::write("s", "x").await);
        ok("copy onto", fs::copy("/bin/sleep", "s").await);
        ok("read", File::open("s").await);
        ok("rename", fs::rename("s", "t").await);
        ok("remove", fs::remove_file("t").await);
        c.kill().unwrap();
        c.wait().unwrap();
    });
}

fn the_limit_of_descriptors_is_emfile_until_one_is_dropped() {
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let _warm = File::open("f").await.unwrap();
        let lim = libc::rlimit { rlim_cur: 40, rlim_max: 40 };
        // SAFETY: what the pointers lead to is valid for the call.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &lim) };
        let mut held = Vec::new();
        let x = loop {
            match File::open("f").await {
                Ok(f) => held.push(f),
                Err(x) => break x,
            }
        };
        println!("{}", error(&x));
        println!("some {}", held.len() > 5);
        ok("create", File::create("g").await);
        println!("g exists {}", Path::new("g").exists());
        ok("read", fs::read("f").await);
        ok("write", fs::write("f", "x").await);
        ok("read_dir", fs::read_dir(".").await);
        ok("copy", fs::copy("f", "h").await);
        ok("try_clone", held[0].try_clone().await);
        ok("metadata", fs::metadata("f").await.map(|_| ()));
        ok("rename", fs::rename("f", "f2").await);
        ok("create_dir", fs::create_dir("d").await);
        let mut b = [0; 3];
        show("read of a held one", held[0].read(&mut b).await);
        held.pop();
        ok("after a drop", fs::read("f2").await);
        ok("clone after a drop", held[0].try_clone().await);
    });
}

fn a_dropped_file_frees_its_descriptor_at_once_when_idle() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "abc").unwrap();
        let mut f = File::open("f").await.unwrap();
        let mut b = [0; 3];
        f.read_exact(&mut b).await.unwrap();
        let before = open_fds();
        drop(f);
        println!("{}", before - open_fds());
        let mut f = File::create("f").await.unwrap();
        f.write_all(b"x").await.unwrap();
        f.flush().await.unwrap();
        let before = open_fds();
        drop(f);
        println!("{}", before - open_fds());
    });
}

fn two_hundred_files_open_at_once() {
    let rt = runtime(4);
    rt.block_on(async {
        let mut set = tokio::task::JoinSet::new();
        for i in 0..200u32 {
            set.spawn(async move {
                let mut f = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .open(format!("f{i}"))
                    .await
                    .unwrap();
                f.write_all(&i.to_le_bytes()).await.unwrap();
                f.rewind().await.unwrap();
                let n = f.read_u32_le().await.unwrap();
                assert_eq!(n, i);
                f
            });
        }
        let fs = set.join_all().await;
        println!("{}", fs.len());
        println!("{}", std::fs::read_dir(".").unwrap().count());
    });
}

fn non_utf8_names_work() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let rt = runtime(0);
    rt.block_on(async {
        let name = std::ffi::OsString::from_vec(vec![b'a', 0xff, 0xfe, b'\n']);
        fs::write(&name, "x").await.unwrap();
        show("read", fs::read(&name).await);
        let mut d = fs::read_dir(".").await.unwrap();
        println!("{:?}", d.next_entry().await.unwrap().unwrap().file_name().as_bytes());
        show("remove", fs::remove_file(&name).await);
    });
}
