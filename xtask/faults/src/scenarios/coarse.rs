//! A sandbox that refuses `epoll_pwait2`, with either of the errors that sandboxes use: the runtime
//! must fall back to the older call, nothing may fail and no sleep may be short.

use std::{
    thread,
    time::{Duration, Instant},
};

use blitz_io::time;

use crate::{
    echo,
    flavour::Flavour,
    kernel::{self, Refusal, Scope},
    outcome::{During, Outcome, Verdict, ensure},
};

pub(super) fn run(flavour: Flavour) -> Verdict {
    for errno in [libc::ENOSYS, libc::EPERM] {
        // A filter is inherited by the threads that are started under it, and cannot be removed, so
        // each attempt starts on a thread of its own.
        let tried = thread::spawn(move || refused(flavour, errno)).join();
        if let Outcome::Skipped(why) = tried.map_err(|_| "the thread panicked".to_owned())?? {
            return Ok(Outcome::Skipped(why));
        }
    }
    Ok(Outcome::Passed("ENOSYS and EPERM: the older call takes its place".into()))
}

fn refused(flavour: Flavour, errno: i32) -> Verdict {
    let refusal = Refusal { call: libc::SYS_epoll_pwait2, second: None, errno };
    if let Err(why) = kernel::refuse(&refusal, Scope::Thread) {
        return Ok(Outcome::Skipped(format!("no filter of system calls is allowed: {why}")));
    }
    let probed = kernel::probe_exact_wait();
    ensure!(probed.raw_os_error() == Some(errno), "the call is not refused: {probed}");
    flavour.runtime()?.block_on(async {
        let (address, _server) = echo::server().await?;
        let mut stream = echo::connect(address).await?;
        for number in 0..200 {
            let (start, wanted) = (Instant::now(), Duration::from_micros(37 * (number % 60)));
            time::sleep(wanted).await;
            ensure!(start.elapsed() >= wanted, "a sleep of {wanted:?} was short");
            echo::exchange(&mut stream, 1, number).await.during("under a filter")?;
        }
        Ok(Outcome::Passed(String::new()))
    })
}
