//! A sandbox that refuses io_uring, with each of the errors that kernels and sandboxes use,
//! to make a ring or only to use it: epoll takes its place, and the doctor knows why.

use std::thread;

use blitz_io::runtime::machine::Machine;

use crate::{
    echo,
    flavour::Flavour,
    kernel::{self, Refusal, Whom},
    told::{Told, Verdict, While, ensure},
};

const CALLS: [libc::c_long; 2] = [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter];
const ERRORS: [i32; 4] = [libc::EPERM, libc::ENOSYS, libc::ENOMEM, libc::EINVAL];

pub(super) fn run(flavour: Flavour) -> Verdict {
    for call in CALLS {
        for errno in ERRORS {
            // A filter stays with its thread for good, so each has one of its own.
            let tried = thread::spawn(move || refused(flavour, call, errno)).join();
            if let Told::Skipped(why) = tried.map_err(|_| "the thread panicked".to_owned())?? {
                return Ok(Told::Skipped(why));
            }
        }
    }
    Ok(Told::Passed("setup and enter, four errors each: epoll takes its place".into()))
}

fn refused(flavour: Flavour, call: libc::c_long, errno: i32) -> Verdict {
    if call == libc::SYS_io_uring_enter && kernel::probe_call(CALLS[0]).raw_os_error() != FAULT {
        return Ok(Told::Skipped("there is no io_uring to be refused".into()));
    }
    if let Err(why) = kernel::refuse(&Refusal { call, second: None, errno }, Whom::Thread) {
        return Ok(Told::Skipped(format!("no filter of system calls is allowed: {why}")));
    }
    let probed = kernel::probe_call(call);
    ensure!(probed.raw_os_error() == Some(errno), "the call is not refused: {probed}");
    let in_force = Machine::probe().io_backend?;
    let (begins, why) = ("epoll, because io_uring is refused: ", format!("(os error {errno})"));
    ensure!(in_force.starts_with(begins) && in_force.contains(&why), "the doctor: {in_force}");
    flavour.runtime()?.block_on(async {
        let (address, _server) = echo::server().await?;
        let mut stream = echo::connect(address).await?;
        for number in 0..50 {
            echo::exchange(&mut stream, 1, number).await.during("under a filter")?;
        }
        Ok(Told::Passed(String::new()))
    })
}

/// What a kernel says that would make a ring if it had parameters.
const FAULT: Option<i32> = Some(libc::EFAULT);
