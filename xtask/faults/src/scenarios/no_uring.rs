//! A sandbox that refuses io_uring, with each of the errors that kernels and sandboxes use, for
//! creating an io_uring or only for using it: a runtime that requests it by name must not be built,
//! the error must say why and what to do, and so must `blitz doctor`.

use std::thread;

use blitz_io::runtime::machine::Machine;

use crate::{
    flavour::Flavour,
    kernel::{self, Refusal, Scope},
    outcome::{Outcome, Verdict, ensure},
};

const CALLS: [libc::c_long; 2] = [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter];
const ERRORS: [i32; 4] = [libc::EPERM, libc::ENOSYS, libc::ENOMEM, libc::EINVAL];

pub(super) fn run(flavour: Flavour) -> Verdict {
    for call in CALLS {
        for errno in ERRORS {
            // A filter cannot be removed from its thread, so each attempt has a thread of its own.
            let tried = thread::spawn(move || refused(flavour, call, errno)).join();
            if let Outcome::Skipped(why) = tried.map_err(|_| "the thread panicked".to_owned())?? {
                return Ok(Outcome::Skipped(why));
            }
        }
    }
    Ok(Outcome::Passed("setup and enter, four errors each: the runtime says so".into()))
}

fn refused(flavour: Flavour, call: libc::c_long, errno: i32) -> Verdict {
    if call == libc::SYS_io_uring_enter && kernel::probe_call(CALLS[0]).raw_os_error() != FAULT {
        return Ok(Outcome::Skipped("there is no io_uring to be refused".into()));
    }
    if let Err(why) = kernel::refuse(&Refusal { call, second: None, errno }, Scope::Thread) {
        return Ok(Outcome::Skipped(format!("no filter of system calls is allowed: {why}")));
    }
    let probed = kernel::probe_call(call);
    ensure!(probed.raw_os_error() == Some(errno), "the call is not refused: {probed}");
    let why = format!("(os error {errno})");
    let says_so = |text: &str| text.contains(&why) && text.contains("unset BLITZ_IO_BACKEND");
    match Machine::probe().io_backend {
        Ok(in_force) => return Err(format!("the doctor expects {in_force}")),
        Err(text) => ensure!(says_so(&text), "the doctor: {text}"),
    }
    match flavour.runtime() {
        Ok(_) => Err("a runtime was built without the requested backend".to_owned()),
        Err(text) if says_so(&text) => Ok(Outcome::Passed(String::new())),
        Err(text) => Err(format!("the runtime: {text}")),
    }
}

/// The error of a kernel that would create an io_uring if it had parameters.
const FAULT: Option<i32> = Some(libc::EFAULT);
