//! Starting processes.

use crate::probe::files::*;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;

pub const CASES: &[(&str, fn())] = &[
    (
        "spawn_errors_of_missing_and_unusable_programs",
        spawn_errors_of_missing_and_unusable_programs,
    ),
    ("spawn_errors_are_the_same_with_pre_exec", spawn_errors_are_the_same_with_pre_exec),
    ("a_script_without_interpreter_line", a_script_without_interpreter_line),
    ("too_long_arguments_are_e2big", too_long_arguments_are_e2big),
    ("a_missing_working_directory_is_enoent", a_missing_working_directory_is_enoent),
    ("nul_bytes_in_a_command_are_invalid_input", nul_bytes_in_a_command_are_invalid_input),
    (
        "another_uid_or_gid_without_privilege_is_eperm",
        another_uid_or_gid_without_privilege_is_eperm,
    ),
    ("errors_of_pre_exec_come_out_of_spawn", errors_of_pre_exec_come_out_of_spawn),
    ("pre_exec_closures_run_in_order_in_the_child", pre_exec_closures_run_in_order_in_the_child),
    (
        "a_failed_spawn_leaves_no_descriptors_and_no_zombie",
        a_failed_spawn_leaves_no_descriptors_and_no_zombie,
    ),
    ("spawn_outside_of_a_runtime_panics", spawn_outside_of_a_runtime_panics),
    ("spawn_without_io_panics", spawn_without_io_panics),
    (
        "spawn_in_the_context_of_a_dropped_runtime_fails",
        spawn_in_the_context_of_a_dropped_runtime_fails,
    ),
    ("spawn_at_the_limit_of_descriptors", spawn_at_the_limit_of_descriptors),
    (
        "a_child_without_a_pidfd_is_awaited_by_sigchld",
        a_child_without_a_pidfd_is_awaited_by_sigchld,
    ),
    ("a_command_can_be_spawned_again", a_command_can_be_spawned_again),
    (
        "status_and_output_spawn_before_they_are_polled",
        status_and_output_spawn_before_they_are_polled,
    ),
    ("output_leaves_the_command_with_pipes", output_leaves_the_command_with_pipes),
    ("arg0_changes_the_name_the_program_sees", arg0_changes_the_name_the_program_sees),
    ("args_are_passed_as_they_are", args_are_passed_as_they_are),
    ("the_environment_of_a_child", the_environment_of_a_child),
    (
        "program_lookup_uses_the_path_given_to_the_child",
        program_lookup_uses_the_path_given_to_the_child,
    ),
    ("the_accessors_of_a_command", the_accessors_of_a_command),
    ("a_std_command_becomes_a_tokio_command", a_std_command_becomes_a_tokio_command),
    ("a_process_group_of_its_own", a_process_group_of_its_own),
    (
        "children_have_the_mask_of_the_thread_and_a_default_sigpipe",
        children_have_the_mask_of_the_thread_and_a_default_sigpipe,
    ),
    ("an_ignored_signal_stays_ignored_in_the_child", an_ignored_signal_stays_ignored_in_the_child),
    (
        "children_inherit_only_the_standard_descriptors",
        children_inherit_only_the_standard_descriptors,
    ),
    ("spawns_from_tasks_threads_and_local_sets", spawns_from_tasks_threads_and_local_sets),
];

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use tokio::process::Command;

fn sh(script: &str) -> Command {
    let mut c = Command::new("/bin/sh");
    c.arg("-c").arg(script);
    c
}

fn exe(path: &str, content: &str, mode: u32) {
    let mut f =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(path).unwrap();
    f.write_all(content.as_bytes()).unwrap();
    drop(f);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn st(r: io::Result<std::process::ExitStatus>) -> String {
    match r {
        Ok(s) => format!("code {:?} signal {:?}", s.code(), s.signal()),
        Err(x) => format!("err {}", error(&x)),
    }
}

async fn out(c: &mut Command) -> String {
    match timeout(Duration::from_secs(3), c.output()).await {
        Ok(Ok(o)) => format!(
            "code {:?} signal {:?} out {:?} err {}",
            o.status.code(),
            o.status.signal(),
            String::from_utf8_lossy(&o.stdout),
            o.stderr.len()
        ),
        Ok(Err(x)) => format!("err {}", error(&x)),
        Err(_) => "timed out".into(),
    }
}

fn spawn_errors_of_missing_and_unusable_programs() {
    std::env::set_var("PATH", "/usr/bin:/bin");
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::create_dir("d").unwrap();
        exe("noexec", "#!/bin/sh\nexit 3\n", 0o644);
        exe("nointerp", "#!/no/such/interpreter\n", 0o755);
        exe("empty", "", 0o755);
        std::os::unix::fs::symlink("loop", "loop").unwrap();
        for p in [
            "no_such_program_at_all",
            "./missing",
            "/no/such/dir/x",
            "./d",
            "./noexec",
            "./noexec/x",
            "./nointerp",
            "./loop",
            "",
            "/",
        ] {
            println!("{p:?}: {}", st(Command::new(p).stdin(Stdio::null()).status().await));
        }
    });
}

fn spawn_errors_are_the_same_with_pre_exec() {
    std::env::set_var("PATH", "/usr/bin:/bin");
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::create_dir("d").unwrap();
        exe("noexec", "#!/bin/sh\nexit 3\n", 0o644);
        exe("nointerp", "#!/no/such/interpreter\n", 0o755);
        for p in [
            "no_such_program_at_all",
            "./missing",
            "./d",
            "./noexec",
            "./noexec/x",
            "./nointerp",
            "",
        ] {
            let mut c = Command::new(p);
            // SAFETY: the closure makes only calls that are allowed between fork and exec.
            unsafe { c.pre_exec(|| Ok(())) };
            println!("{p:?}: {}", st(c.stdin(Stdio::null()).status().await));
        }
    });
}

fn a_script_without_interpreter_line() {
    let rt = runtime(1);
    rt.block_on(async {
        exe("script", "exit 3\n", 0o755);
        println!("plain: {}", st(Command::new("./script").status().await));
        let mut c = Command::new("./script");
        // SAFETY: the closure makes only calls that are allowed between fork and exec.
        unsafe { c.pre_exec(|| Ok(())) };
        println!("pre_exec: {}", st(c.status().await));
        exe("garbage", "\u{1}\u{2}\u{3}\u{0}\u{4}", 0o755);
        println!("garbage: {}", st(Command::new("./garbage").stderr(Stdio::null()).status().await));
    });
}

fn too_long_arguments_are_e2big() {
    let rt = runtime(0);
    rt.block_on(async {
        println!("{}", st(Command::new("/bin/true").arg("x".repeat(3 << 20)).status().await));
        println!("{}", st(Command::new("/bin/true").env("A", "x".repeat(3 << 20)).status().await));
        println!("{}", st(Command::new("/bin/true").arg("x".repeat(100_000)).status().await));
    });
}

fn a_missing_working_directory_is_enoent() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "").unwrap();
        println!("{}", st(Command::new("/bin/true").current_dir("missing").status().await));
        println!("{}", st(Command::new("/bin/true").current_dir("f").status().await));
        println!("{}", st(Command::new("/bin/true").current_dir("").status().await));
        std::fs::create_dir("d").unwrap();
        println!("{}", out(sh("basename \"$(pwd)\"").current_dir("d")).await);
    });
}

fn nul_bytes_in_a_command_are_invalid_input() {
    let rt = runtime(1);
    rt.block_on(async {
        text("program", Command::new("a\0b").spawn().map(|_| ()));
        text("arg", Command::new("true").arg("a\0b").spawn().map(|_| ()));
        text("env value", Command::new("true").env("A", "a\0b").spawn().map(|_| ()));
        text("env key", Command::new("true").env("A\0", "a").spawn().map(|_| ()));
        text("cwd", Command::new("true").current_dir("a\0").spawn().map(|_| ()));
        text("arg0", Command::new("true").arg0("a\0").spawn().map(|_| ()));
        text("output", Command::new("tr\0ue").output().await.map(|_| ()));
        text("status", Command::new("tr\0ue").status().await.map(|_| ()));
    });
}

fn another_uid_or_gid_without_privilege_is_eperm() {
    if !drop_root() {
        println!("needs root or user");
        return;
    }
    let rt = runtime(0);
    rt.block_on(async {
        println!("{}", st(Command::new("/bin/true").uid(0).status().await));
        println!("{}", st(Command::new("/bin/true").uid(12345).status().await));
        println!("{}", st(Command::new("/bin/true").gid(12345).status().await));
    });
}

fn errors_of_pre_exec_come_out_of_spawn() {
    let rt = runtime(2);
    rt.block_on(async {
        for code in [libc::EPERM, libc::ENOENT, libc::EAGAIN, 133] {
            let mut c = Command::new("/bin/true");
            // SAFETY: the closure makes only calls that are allowed between fork and exec.
            unsafe { c.pre_exec(move || Err(io::Error::from_raw_os_error(code))) };
            println!("{}", st(c.status().await));
        }
        let mut c = Command::new("/bin/true");
        // SAFETY: the closure makes only calls that are allowed between fork and exec.
        unsafe { c.pre_exec(|| Err(io::Error::new(ErrorKind::Other, "own"))) };
        println!("{}", st(c.status().await));
        let mut c = Command::new("/bin/true");
        // SAFETY: the closure makes only calls that are allowed between fork and exec.
        unsafe { c.pre_exec(|| Err(ErrorKind::NotFound.into())) };
        println!("{}", st(c.status().await));
    });
}

fn pre_exec_closures_run_in_order_in_the_child() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = Command::new("/bin/echo");
        c.arg("-n").arg("three");
        // SAFETY: the closures only call `write` with static bytes, which is allowed between fork
        // and exec.
        unsafe {
            c.pre_exec(|| {
                libc::write(1, b"one ".as_ptr().cast(), 4);
                Ok(())
            });
            c.pre_exec(|| {
                libc::write(1, b"two ".as_ptr().cast(), 4);
                Ok(())
            });
        }
        println!("{}", out(&mut c).await);
        println!("{}", out(&mut c).await);
    });
}

fn a_failed_spawn_leaves_no_descriptors_and_no_zombie() {
    let rt = runtime(0);
    rt.block_on(async {
        let _ = Command::new("./missing").stdin(Stdio::piped()).output().await;
        let before = open_fds();
        for _ in 0..20 {
            let r = Command::new("./missing")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            assert!(r.is_err());
        }
        println!("{}", open_fds() as i64 - before as i64);
        // SAFETY: a null pointer for the status is allowed.
        let r = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
        println!("{r} {:?}", io::Error::last_os_error().raw_os_error());
    });
}

fn spawn_outside_of_a_runtime_panics() {
    panics("plain", || Command::new("/bin/true").spawn().map(|_| ()));
    panics("piped", || Command::new("/bin/true").stdout(Stdio::piped()).spawn().map(|_| ()));
    panics("status", || drop(Command::new("/bin/true").status()));
    panics("output", || drop(Command::new("/bin/true").output()));
    panics("missing", || text("missing", Command::new("./missing").spawn().map(|_| ())));
}

fn spawn_without_io_panics() {
    for n in [0, 1] {
        let mut b =
            if n == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
        let rt = b.enable_time().build().unwrap();
        let _g = rt.enter();
        panics("plain", || Command::new("/bin/true").spawn().map(|_| ()));
        panics("piped", || Command::new("/bin/true").stdin(Stdio::piped()).spawn().map(|_| ()));
    }
}

fn spawn_in_the_context_of_a_dropped_runtime_fails() {
    for n in [0, 2] {
        let r = runtime(n);
        let h = r.handle().clone();
        drop(r);
        let _g = h.enter();
        text("plain", Command::new("/bin/true").spawn().map(|_| ()));
        text("piped", Command::new("/bin/true").stdout(Stdio::piped()).spawn().map(|_| ()));
    }
}

fn spawn_at_the_limit_of_descriptors() {
    let rt = runtime(0);
    rt.block_on(async {
        println!("{}", st(Command::new("/bin/true").status().await));
        let lim = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
        // SAFETY: what the pointers lead to is valid for the call.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &lim) };
        let mut held = Vec::new();
        while let Ok(f) = std::fs::File::open("/dev/null") {
            held.push(f);
        }
        let inherit = Command::new("/bin/true").spawn().map(|_| ());
        // Without a descriptor for the pidfd, SIGCHLD serves.
        show("no descriptor", inherit);
        show("piped", Command::new("/bin/true").stdout(Stdio::piped()).spawn().map(|_| ()));
        show("output", Command::new("/bin/true").output().await.map(|_| ()));
        held.truncate(held.len() - 20);
        println!("{}", out(&mut sh("echo again; exit 4")).await);
    });
}

fn a_child_without_a_pidfd_is_awaited_by_sigchld() {
    // Between "too few for the pipes" and "enough for a pidfd".
    let rt = runtime(2);
    rt.block_on(async {
        println!("{}", st(Command::new("/bin/true").status().await));
        let lim = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
        // SAFETY: what the pointers lead to is valid for the call.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &lim) };
        let mut held = Vec::new();
        while let Ok(f) = std::fs::File::open("/dev/null") {
            held.push(f);
        }
        let mut worked = 0;
        for _ in 0..12 {
            match timeout(Duration::from_secs(2), sh("exit 9").stdin(Stdio::null()).status()).await
            {
                Ok(Ok(s)) => {
                    assert_eq!(s.code(), Some(9));
                    worked += 1;
                }
                Ok(Err(x)) => assert_eq!(x.raw_os_error(), Some(libc::EMFILE)),
                Err(_) => println!("hung"),
            }
            held.pop();
        }
        println!("{}", worked > 5);
    });
}

fn a_command_can_be_spawned_again() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = sh("echo $X; exit 2");
        c.env("X", "1");
        println!("{}", out(&mut c).await);
        c.env("X", "2");
        println!("{}", out(&mut c).await);
        c.env_remove("X");
        println!("{}", out(&mut c).await);
    });
}

fn status_and_output_spawn_before_they_are_polled() {
    let rt = runtime(0);
    rt.block_on(async {
        let a = sh("echo > a").status();
        println!("{}", until(|| Path::new("a").exists()));
        let b = sh("echo > b").output();
        println!("{}", until(|| Path::new("b").exists()));
        println!("{}", st(a.await));
        println!("{}", st(b.await.map(|o| o.status)));
    });
}

fn output_leaves_the_command_with_pipes() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = sh("echo x");
        let mut first = c.stdout(Stdio::null()).spawn().unwrap();
        println!("{} {} {}", first.stdin.is_some(), first.stdout.is_some(), first.stderr.is_some());
        first.wait().await.unwrap();
        println!("{}", out(&mut c).await);
        let mut then = c.spawn().unwrap();
        println!("{} {} {}", then.stdin.is_some(), then.stdout.is_some(), then.stderr.is_some());
        then.wait().await.unwrap();
    });
}

fn arg0_changes_the_name_the_program_sees() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = Command::new("/bin/sh");
        c.arg0("my-shell").args(["-c", "tr '\\0' ' ' < /proc/$$/cmdline | cut -c1-12; exit 0"]);
        println!("{}", out(&mut c).await);
    });
}

fn args_are_passed_as_they_are() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = Command::new("/usr/bin/printf");
        c.arg("[%s]").args(["", "a b", "\"q\"", "$HOME", "*", "-x", "ü\n"]).arg("\\n");
        println!("{}", out(&mut c).await);
    });
}

fn the_environment_of_a_child() {
    let rt = runtime(2);
    rt.block_on(async {
        std::env::set_var("DIFF_B_SET", "parent");
        println!("{}", out(Command::new("/usr/bin/env").env_clear()).await);
        println!(
            "{}",
            out(Command::new("/usr/bin/env").env_clear().env("B", "2").env("A", "1")).await
        );
        println!("{}", out(Command::new("/usr/bin/env").env("B", "2").env_clear()).await);
        println!(
            "{}",
            out(Command::new("/usr/bin/env").env_clear().envs([("X", "y"), ("Z", "")])).await
        );
        println!("{}", out(&mut sh("echo $DIFF_B_SET")).await);
        println!("{}", out(sh("echo $DIFF_B_SET").env("DIFF_B_SET", "child")).await);
        println!("{}", out(sh("echo ${DIFF_B_SET-unset}").env_remove("DIFF_B_SET")).await);
        println!("{}", std::env::var("DIFF_B_SET").unwrap());
        let mut c = Command::new("/usr/bin/env");
        c.env("K", "v").env_remove("L");
        for (k, v) in c.as_std().get_envs() {
            println!("{k:?} {v:?}");
        }
    });
}

fn program_lookup_uses_the_path_given_to_the_child() {
    std::env::set_var("PATH", "/usr/bin:/bin");
    let rt = runtime(1);
    rt.block_on(async {
        std::fs::create_dir("bin").unwrap();
        exe("bin/my_tool_xyz", "#!/bin/sh\necho found\n", 0o755);
        println!("{}", out(&mut Command::new("my_tool_xyz")).await);
        println!("{}", out(Command::new("my_tool_xyz").env("PATH", "bin:/bin")).await);
        println!("{}", out(Command::new("my_tool_xyz").env("PATH", "/nowhere")).await);
        println!("{}", out(Command::new("true").env_clear()).await);
        println!("{}", out(Command::new("true").env("PATH", "/nowhere")).await);
    });
}

fn the_accessors_of_a_command() {
    let mut c = Command::new("prog");
    println!("{}", c.get_kill_on_drop());
    c.arg("a").args(["b", "c"]).current_dir("d").kill_on_drop(true);
    println!("{}", c.get_kill_on_drop());
    println!(
        "{:?} {:?} {:?}",
        c.as_std().get_program(),
        c.as_std().get_args().collect::<Vec<_>>(),
        c.as_std().get_current_dir()
    );
    c.as_std_mut().arg("z");
    println!("{:?}", c.as_std().get_args().count());
    let s = c.into_std();
    println!("{:?}", s.get_program());
    let c: Command = s.into();
    println!("{} {}", c.as_std().get_args().count(), c.get_kill_on_drop());
}

fn a_std_command_becomes_a_tokio_command() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut s = std::process::Command::new("/bin/sh");
        s.args(["-c", "echo $A; exit 5"]).env("A", "b");
        let mut c = Command::from(s);
        println!("{}", out(&mut c).await);
        println!("{:?}", c.into_std().status().map(|s| s.code()));
    });
}

fn a_process_group_of_its_own() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = Command::new("/bin/cat");
        let o = c.arg("/proc/self/stat").process_group(0).output().await.unwrap();
        let s = String::from_utf8(o.stdout).unwrap();
        let v: Vec<&str> = s.split(' ').collect();
        println!("leader {}", v[0] == v[4]);
        let o = Command::new("/bin/cat").arg("/proc/self/stat").output().await.unwrap();
        let s = String::from_utf8(o.stdout).unwrap();
        let v: Vec<&str> = s.split(' ').collect();
        // SAFETY: the call takes numbers and no memory.
        println!(
            "leader {} ours {}",
            v[0] == v[4],
            v[4].parse::<i32>().unwrap() == unsafe { libc::getpgrp() }
        );
        let mut a = Command::new("/bin/sleep").arg("100").process_group(0).spawn().unwrap();
        let g = a.id().unwrap() as i32;
        let mut b = Command::new("/bin/sleep").arg("100").process_group(g).spawn().unwrap();
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::kill(-g, libc::SIGTERM) };
        println!("{} / {}", st(a.wait().await), st(b.wait().await));
        println!("{}", st(Command::new("/bin/true").process_group(999_999).status().await));
    });
}

fn children_have_the_mask_of_the_thread_and_a_default_sigpipe() {
    let rt = runtime(1);
    rt.block_on(async {
        // SIGPIPE is ignored in a Rust program and default in its children.
        // SAFETY: the pointers are to a local that outlives the calls, and the old mask may be
        // null; a set of zeros is valid.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGUSR2);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        }
        let j = tokio::task::spawn_blocking(|| 1).await.unwrap();
        assert_eq!(j, 1);
        let o = Command::new("/bin/grep")
            .args(["-E", "^Sig(Blk|Ign)", "/proc/self/status"])
            .output()
            .await
            .unwrap();
        let s = String::from_utf8(o.stdout).unwrap();
        for l in s.lines() {
            let (k, v) = l.split_once(":\t").unwrap();
            let m = u64::from_str_radix(v, 16).unwrap();
            println!(
                "{k} pipe {} usr2 {}",
                m >> (libc::SIGPIPE - 1) & 1,
                m >> (libc::SIGUSR2 - 1) & 1
            );
        }
        println!("{}", out(&mut sh("kill -PIPE $$; echo alive")).await);
    });
}

fn an_ignored_signal_stays_ignored_in_the_child() {
    let rt = runtime(0);
    rt.block_on(async {
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::signal(libc::SIGUSR1, libc::SIG_IGN) };
        println!("{}", out(&mut sh("kill -USR1 $$; echo alive")).await);
        println!("{}", out(&mut sh("kill -USR2 $$; echo alive")).await);
    });
}

fn children_inherit_only_the_standard_descriptors() {
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::close_range(3, u32::MAX, 0) };
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "").unwrap();
        let _f = tokio::fs::File::open("f").await.unwrap();
        let _l = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _c = Command::new("/bin/cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // The shell and ls: 0, 1, 2, and the directory itself.
        println!(
            "{}",
            out(Command::new("/bin/ls").arg("/proc/self/fd").stdin(Stdio::null())).await
        );
    });
}

fn spawns_from_tasks_threads_and_local_sets() {
    let rt4 = runtime(4);
    rt4.block_on(async {
        let j = tokio::spawn(async { st(sh("exit 1").status().await) });
        println!("{}", j.await.unwrap());
        let h = Handle::current();
        let j = tokio::task::spawn_blocking(move || {
            let r = sh("exit 2").spawn();
            st(h.block_on(async { r.unwrap().wait().await }))
        });
        println!("{}", j.await.unwrap());
    });
    let rt0 = runtime(0);
    tokio::task::LocalSet::new().block_on(&rt0, async {
        let j = tokio::task::spawn_local(async { st(sh("exit 3").status().await) });
        println!("{}", j.await.unwrap());
    });
    let h = rt4.handle().clone();
    let t = std::thread::spawn(move || {
        let _g = h.enter();
        let mut c = sh("exit 4").spawn().unwrap();
        st(h.block_on(c.wait()))
    });
    println!("{}", t.join().unwrap());
}
