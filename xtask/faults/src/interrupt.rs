//! Runs a program while signals are sent to its threads at random.
//!
//! SIGURG is ignored unless a process handles it; then it interrupts the thread that it is sent to,
//! wherever that is. The program must not notice. Its children get signals too, because some tests
//! run in a process of their own. Only signals to a process that handles them are counted: with
//! `BLITZ_IT_INTERRUPT` the tests do.

use std::{
    fs,
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

/// The pause between two signals: some hundred a second, on a machine that has something to do as
/// well.
const PAUSE: Duration = Duration::from_millis(1);

/// The exit code if the program ended before anything was sent, or handles nothing.
const SKIPPED: u8 = 77;

/// The interval at which the processes are listed.
const SCAN_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `faults interrupt PROGRAM …`: exits with the program's exit code.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let [program, arguments @ ..] = arguments else {
        println!("say which program");
        return ExitCode::FAILURE;
    };
    let mut child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(why) => {
            println!("cannot start {program}: {why}");
            return ExitCode::FAILURE;
        }
    };
    let (mut sent, mut random) = (0_u64, u64::from(child.id()) | 1);
    let (mut processes, mut looked) = (Vec::new(), Instant::now());
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(why) => {
                println!("cannot wait for {program}: {why}");
                return ExitCode::FAILURE;
            }
        }
        if looked.elapsed() >= SCAN_INTERVAL {
            processes = with_descendants(child.id());
            processes.retain(|process| handles_it(*process));
            looked = Instant::now();
        }
        if !processes.is_empty() {
            let process = processes[below(&mut random, processes.len())];
            let threads = numbers(&format!("/proc/{process}/task"));
            if !threads.is_empty() {
                let thread = threads[below(&mut random, threads.len())];
                sent += u64::from(send(process, thread));
            }
        }
        thread::sleep(PAUSE);
    };
    println!("{sent} signals interrupted threads at random");
    match status.code() {
        Some(0) if sent > 0 => ExitCode::SUCCESS,
        Some(0) => {
            println!("that is too few to say anything");
            ExitCode::from(SKIPPED)
        }
        _ => {
            println!("{program}: {status}");
            ExitCode::FAILURE
        }
    }
}

/// Returns a process and its descendants.
fn with_descendants(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut next = 0;
    while let Some(&process) = all.get(next) {
        for thread in numbers(&format!("/proc/{process}/task")) {
            let list = fs::read_to_string(format!("/proc/{process}/task/{thread}/children"));
            all.extend(
                list.unwrap_or_default().split_whitespace().filter_map(|n| n.parse::<u32>().ok()),
            );
        }
        next += 1;
    }
    all
}

/// Returns true if a process has a handler for the signal, by the mask that the system reports.
fn handles_it(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (libc::SIGURG - 1) != 0)
}

/// Returns the names in a folder that are numbers.
fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Sends the signal; returns `false` if the thread no longer exists.
fn send(process: u32, thread: u32) -> bool {
    // SAFETY: the system call takes no pointers.
    unsafe {
        libc::syscall(libc::SYS_tgkill, process as libc::pid_t, thread as libc::pid_t, libc::SIGURG)
            == 0
    }
}

/// Returns a number below `bound`, by xorshift.
fn below(random: &mut u64, bound: usize) -> usize {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random % bound as u64) as usize
}
