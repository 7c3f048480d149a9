//! Tests a name lookup that blocks inside of a poll.
//!
//! No test can make a name server slow. So this program has a `getaddrinfo` of its own, in front of
//! the system's: the lookup of one name waits in it until it is released.

use std::{
    ffi::{CStr, c_char, c_int},
    io,
    net::ToSocketAddrs,
    sync::{Condvar, Mutex},
};

use blitz_io::runtime::{Builder, StallKind};

use crate::support::watchdog;

const SLOW: &CStr = c"slow.test";

/// True once the lookup of the slow name is released.
static LET_GO: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// # Safety
/// 1. The strings must end with a zero byte or be null, and `found` must be writable.
type GetAddrInfo = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const libc::addrinfo,
    *mut *mut libc::addrinfo,
) -> c_int;

/// # Safety
/// 1. The arguments must satisfy [`GetAddrInfo`].
// SAFETY: the function has the type of the one that it replaces, and the same behaviour.
#[unsafe(no_mangle)]
unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const libc::addrinfo,
    found: *mut *mut libc::addrinfo,
) -> c_int {
    // SAFETY: by obligation 1, `node` ends with a zero byte if it is not null.
    if !node.is_null() && unsafe { CStr::from_ptr(node) } == SLOW {
        let (lock, reports) = &LET_GO;
        drop(reports.wait_while(lock.lock().unwrap(), |go| !*go).unwrap());
        return libc::EAI_NONAME;
    }
    // SAFETY: the name ends with a zero byte.
    let real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"getaddrinfo".as_ptr()) };
    assert!(!real.is_null(), "the system has one");
    // SAFETY: `real` has this type, and by obligation 1 the arguments are valid for it.
    unsafe {
        std::mem::transmute::<*mut libc::c_void, GetAddrInfo>(real)(node, service, hints, found)
    }
}

#[test]
fn a_blocking_name_lookup_in_a_poll_holds_up_no_other_task() {
    let _watch = watchdog::start();
    let (sender, reports) = std::sync::mpsc::channel();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_task_stall(move |stall| _ = sender.send(stall.clone()))
        .preemption(blitz_io::runtime::Preemption::new())
        .build()
        .unwrap();
    let looks_up = rt.spawn(async { (SLOW.to_str().unwrap(), 80).to_socket_addrs().map(drop) });
    assert_eq!(rt.block_on(rt.spawn(async { 7 })).unwrap(), 7);
    let stall = reports.recv().unwrap();
    assert_eq!((stall.task(), stall.kind()), (looks_up.id(), StallKind::Blocked));
    assert!(!looks_up.is_finished());
    *LET_GO.0.lock().unwrap() = true;
    LET_GO.1.notify_all();
    let error: io::Error = rt.block_on(looks_up).unwrap().unwrap_err();
    assert!(error.to_string().contains("lookup"), "{error}");
    // The system looks up all other names.
    assert!(("127.0.0.1", 80).to_socket_addrs().unwrap().next().is_some());
    let local = ("localhost", 80).to_socket_addrs();
    assert!(local.unwrap().all(|address| address.ip().is_loopback()));
}
