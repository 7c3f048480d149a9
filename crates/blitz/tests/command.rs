//! The command as a user runs it: exit codes, and what goes to which output.

use std::{
    process::{Command, Output},
    sync::{Mutex, PoisonError},
};

fn blitz(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_blitz"))
        .args(arguments)
        .env_remove("BLITZ_WORKER_THREADS")
        .env_remove("TOKIO_WORKER_THREADS")
        .env_remove("BLITZ_IO_BACKEND")
        .output()
        .expect("the command was built beside this test")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the command writes UTF-8")
}

#[test]
fn doctor_prints_what_the_machine_offers_and_what_is_chosen() {
    let output = blitz(&["doctor"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = text(&output.stdout);
    for row in
        ["cores", "quota", "membarrier", "io_uring", "open files", "workers", "input, output"]
    {
        assert!(page.lines().any(|line| line.starts_with(&format!("  {row} "))), "{row}: {page}");
    }
    assert!(!page.contains('\x1b'), "colours went into a pipe: {page}");
}

#[test]
fn doctor_fails_where_the_runtime_would_refuse_to_start() {
    let output = Command::new(env!("CARGO_BIN_EXE_blitz"))
        .arg("doctor")
        .env("BLITZ_WORKER_THREADS", "none")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("BLITZ_WORKER_THREADS is `none`"), "{output:?}");
}

#[test]
fn doctor_prints_which_backend_is_in_force_and_fails_where_there_is_none() {
    let doctor = |backend: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blitz"));
        command.arg("doctor").env("BLITZ_IO_BACKEND", backend).output().unwrap()
    };
    let output = doctor("nonsense");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("`nonsense`"), "{output:?}");
    if cfg!(unix) {
        let output = doctor("poll");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(text(&output.stdout).contains("  input, output  poll;"), "{output:?}");
    }
    if cfg!(target_os = "linux") {
        let output = doctor("uring");
        let page = text(&output.stdout);
        let refused = "waiting for events by uring is refused here";
        let expected = if output.status.success() { "  input, output  io_uring;" } else { refused };
        assert!(page.contains(expected), "{output:?}");
    }
}

#[test]
fn an_unknown_command_exits_with_2_and_writes_nothing_to_the_output() {
    let output = blitz(&["docter"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(text(&output.stderr).contains("did you mean `doctor`"), "{output:?}");
}

#[test]
fn version_and_help_exit_with_0() {
    let version = blitz(&["--version"]);
    assert_eq!(text(&version.stdout), format!("blitz {}\n", env!("CARGO_PKG_VERSION")));
    let help = blitz(&["help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).starts_with("usage: blitz"), "{help:?}");
}

#[test]
fn bench_outside_of_a_checkout_says_where_to_go() {
    let output = Command::new(env!("CARGO_BIN_EXE_blitz"))
        .arg("bench")
        .current_dir(std::env::temp_dir())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("inside a checkout"), "{output:?}");
}

/// Held during a tour, because tours measure, and would take processors from each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn every_claim_of_the_tour_holds_with_one_worker_and_with_several() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for workers in ["1", "2", "8"] {
        let output = Command::new(env!("CARGO_BIN_EXE_blitz"))
            .env("BLITZ_WORKER_THREADS", workers)
            .output()
            .unwrap();
        let page = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{workers} workers: {page}");
        assert!(page.contains(" claims held"), "{page}");
        assert!(page.contains(" requests a second"), "{page}");
        assert!(page.contains(" a join\n"), "{page}");
        // Rayon is not linked: its figure is a recorded one, and the page must say so.
        let rayon = page.lines().find(|line| line.contains("Rayon")).expect("Rayon is named");
        assert!(rayon.contains("recorded"), "{rayon}");
    }
}

#[test]
fn the_tour_joins_on_a_pool_of_one_thread_too() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for threads in ["1", "5"] {
        let output = Command::new(env!("CARGO_BIN_EXE_blitz"))
            .env("BLITZ_WORKER_THREADS", "2")
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        let page = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{threads} threads: {page}");
        assert!(page.contains(&format!("cut-off, threads {threads};")), "{page}");
        // With one thread, no other thread can take a half.
        assert_eq!(page.contains("taken by another thread"), threads != "1", "{page}");
    }
}
