//! Tests look-ups with an injected resolver, which returns when a test lets it.
//!
//! Each test uses host names of its own, under `.injected`, and records which of them are looked
//! up.

use std::{
    collections::HashMap,
    future::Future,
    io::{self, BufRead, BufReader, Read},
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    process::{Command, Stdio},
    sync::{Arc, Condvar, Mutex, OnceLock},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
    vec,
};

use super::max_lookups;
use crate::{
    net::lookup_host,
    runtime::{Builder, Runtime},
    task,
};

/// Domain of one test: the hosts that were looked up, in order, and whether the resolver may
/// return.
#[derive(Default)]
struct Domain {
    state: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
}

static DOMAINS: OnceLock<Mutex<HashMap<String, Arc<Domain>>>> = OnceLock::new();

fn domains() -> &'static Mutex<HashMap<String, Arc<Domain>>> {
    DOMAINS.get_or_init(Mutex::default)
}

/// Resolves `host` for `call_resolver`, in place of the system, if the host belongs to a test.
pub(super) fn injected(host: &str, port: u16) -> Option<io::Result<vec::IntoIter<SocketAddr>>> {
    let name = host.strip_suffix(".injected")?.rsplit('.').next()?.to_owned();
    let domain = domains().lock().unwrap().get(&name)?.clone();
    let mut state = domain.state.lock().unwrap();
    state.0.push(host.to_owned());
    domain.changed.notify_all();
    let state = domain.changed.wait_while(state, |state| !state.1).unwrap();
    drop(state);
    if host.starts_with("unknown.") {
        return Some(Err(io::Error::new(io::ErrorKind::NotFound, "no such host")));
    }
    Some(Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))].into_iter()))
}

impl Domain {
    fn new(name: &str) -> Arc<Self> {
        let domain = Arc::new(Self::default());
        assert!(domains().lock().unwrap().insert(name.to_owned(), domain.clone()).is_none());
        domain
    }

    /// Lets the resolver return, from now on.
    fn let_return(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    /// Waits until the resolver was called `count` times.
    fn wait_for_calls(&self, count: usize) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| state.0.len() < count).unwrap());
    }

    fn called_hosts(&self) -> Vec<String> {
        self.state.lock().unwrap().0.clone()
    }
}

fn runtime(blocking: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(blocking)
        .enable_all()
        .build()
        .unwrap()
}

async fn find(host: String) -> io::Result<Vec<SocketAddr>> {
    Ok(lookup_host((host, 80)).await?.collect())
}

/// Polls the look-up once, and returns whether it was ready. A look-up that is passed by value is
/// dropped afterwards, as by a caller that gives up.
fn begin(lookup: impl Future) -> bool {
    pin!(lookup).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn lookups_have_a_quarter_of_the_threads_and_at_least_one() {
    assert_eq!([1, 3, 4, 8, 512].map(max_lookups), [1, 1, 1, 2, 128]);
}

#[test]
fn an_address_literal_needs_no_lookup_thread() {
    let rt = runtime(4);
    rt.block_on(async {
        for known in ["127.0.0.1:80", "[::1]:80", "::1:80"] {
            assert_eq!(lookup_host(known).await.unwrap().count(), 1, "{known}");
        }
        assert_eq!(lookup_host(("::1", 80)).await.unwrap().count(), 1);
        for wrong in ["", "localhost", "localhost:", "localhost:http", "localhost:65536"] {
            let error = lookup_host(wrong).await.map(drop).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{wrong}");
            let text = error.to_string();
            assert!(text.contains(&format!("look up `{wrong}`")), "{text}");
            assert!(text.contains("host:port") || text.contains("65535"), "{text}");
        }
    });
    assert_eq!(rt.metrics().num_blocking_threads(), 0);
}

#[test]
fn a_result_and_an_error_come_from_the_resolver() {
    let domain = Domain::new("returns");
    domain.let_return();
    let rt = runtime(4);
    let found = rt.block_on(find("known.returns.injected".to_owned())).unwrap();
    assert_eq!(found, [SocketAddr::from((Ipv4Addr::LOCALHOST, 80))]);
    let error = rt.block_on(find("unknown.returns.injected".to_owned())).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let text = error.to_string();
    assert!(text.contains("`unknown.returns.injected:80`: no such host"), "{text}");
}

#[test]
fn a_drop_or_time_out_frees_the_caller_at_once() {
    let domain = Domain::new("stuck");
    let rt = runtime(4);
    rt.block_on(async {
        let mut stuck = Box::pin(find("a.stuck.injected".to_owned()));
        assert!(!begin(stuck.as_mut()), "it waits");
        // A thread must be in the resolver first, because a look-up that is dropped before its
        // turn is never started.
        domain.wait_for_calls(1);
        assert!(crate::time::timeout(Duration::from_millis(1), stuck).await.is_err());
        assert!(!begin(find("b.stuck.injected".to_owned())), "queued, and dropped");
        // The caller continues here while the only permit is still taken.
        domain.let_return();
        // The result that no caller waited for has returned the permit.
        find("c.stuck.injected".to_owned()).await.unwrap();
    });
    assert_eq!(domain.called_hosts(), ["a.stuck.injected", "c.stuck.injected"]);
}

#[test]
fn stuck_lookups_leave_threads_for_other_work() {
    let domain = Domain::new("many");
    let rt = runtime(8);
    let lookups: Vec<_> = (0..20).map(|n| rt.spawn(find(format!("n{n}.many.injected")))).collect();
    domain.wait_for_calls(2);
    // All the other threads are available for other work, at the same time.
    let meeting = Arc::new(std::sync::Barrier::new(6));
    let others: Vec<_> = (0..6)
        .map(|_| {
            let meeting = meeting.clone();
            rt.spawn_blocking(move || meeting.wait())
        })
        .collect();
    for other in others {
        rt.block_on(other).unwrap();
    }
    assert_eq!(domain.called_hosts().len(), 2, "a third thread looks up");
    domain.let_return();
    for lookup in lookups {
        assert_eq!(rt.block_on(lookup).unwrap().unwrap().len(), 1);
    }
    assert_eq!(domain.called_hosts().len(), 20, "each was looked up once");
}

#[test]
fn lookups_that_wait_start_in_order() {
    let domain = Domain::new("order");
    let rt = runtime(1);
    let names: Vec<_> = (0..10).map(|n| format!("n{n}.order.injected")).collect();
    rt.block_on(async {
        let mut lookups: Vec<_> = names.iter().map(|name| Box::pin(find(name.clone()))).collect();
        for lookup in &mut lookups {
            assert!(!begin(lookup.as_mut()));
        }
        domain.wait_for_calls(1);
        domain.let_return();
        // The order in which callers await the look-ups does not matter: only the queue's order
        // does.
        for let_return in crate::future::join_all(lookups.into_iter().rev()).await {
            let_return.unwrap();
        }
    });
    assert_eq!(domain.called_hosts(), names);
}

#[test]
fn a_lookup_that_stops_waiting_never_starts() {
    let domain = Domain::new("leaves");
    let rt = runtime(1);
    rt.block_on(async {
        let mut first = Box::pin(find("first.leaves.injected".to_owned()));
        let mut gone = Box::pin(find("gone.leaves.injected".to_owned()));
        let mut last = Box::pin(find("last.leaves.injected".to_owned()));
        for lookup in [&mut first, &mut gone, &mut last] {
            assert!(!begin(lookup.as_mut()));
        }
        domain.wait_for_calls(1);
        drop(gone);
        domain.let_return();
        first.await.unwrap();
        last.await.unwrap();
    });
    assert_eq!(domain.called_hosts(), ["first.leaves.injected", "last.leaves.injected"]);
}

#[test]
fn a_lookup_that_no_thread_has_taken_never_starts_after_a_drop() {
    let domain = Domain::new("queued");
    domain.let_return();
    let rt = runtime(1);
    let (go_on, wait) = std::sync::mpsc::channel();
    // The only thread is busy, so the look-up has a permit and waits for the thread.
    let busy = rt.spawn_blocking(move || wait.recv());
    rt.block_on(async {
        assert!(!begin(find("gone.queued.injected".to_owned())));
        go_on.send(()).unwrap();
        busy.await.unwrap().unwrap();
        find("last.queued.injected".to_owned()).await.unwrap();
    });
    assert_eq!(domain.called_hosts(), ["last.queued.injected"]);
}

#[test]
fn a_shutdown_ends_the_wait_of_lookups() {
    let domain = Domain::new("ends");
    let rt = runtime(1);
    let handle = rt.handle().clone();
    let mut first = Box::pin(find("first.ends.injected".to_owned()));
    let mut second = Box::pin(find("second.ends.injected".to_owned()));
    {
        let _inside = handle.enter();
        assert!(!begin(first.as_mut()) && !begin(second.as_mut()));
    }
    domain.wait_for_calls(1);
    rt.shutdown_background();
    // Polled outside of the runtime, because the look-up needs nothing of it any more.
    let poll = second.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Err(error)) = poll else { panic!("it still waits: {poll:?}") };
    assert!(error.to_string().contains("`second.ends.injected:80`"), "{error}");
    assert!(error.to_string().contains("shutting down"), "{error}");
    let _inside = handle.enter();
    let mut third = Box::pin(find("third.ends.injected".to_owned()));
    let poll = third.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(poll, Poll::Ready(Err(_))));
    domain.let_return();
    assert_eq!(handle.block_on(first).unwrap().len(), 1, "the lookup completes");
    assert_eq!(domain.called_hosts(), ["first.ends.injected"]);
}

#[test]
fn a_lookup_may_be_leaked() {
    let domain = Domain::new("leaked");
    let rt = runtime(1);
    rt.block_on(async {
        let mut leaked = Box::pin(find("leaked.leaked.injected".to_owned()));
        assert!(!begin(leaked.as_mut()));
        std::mem::forget(leaked);
        domain.wait_for_calls(1);
        domain.let_return();
        find("next.leaked.injected".to_owned()).await.unwrap();
    });
}

const ROLE: &str = "BLITZ_LOOKUP_ROLE";

#[test]
fn a_stuck_lookup_is_named_at_shutdown() {
    if std::env::var_os(ROLE).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["net::lookup::tests::a_stuck_lookup_is_named_at_shutdown", "--exact"]);
        child.arg("--nocapture").env(ROLE, "stuck").stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut go = child.stdin.take();
        let mut text = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        while lines.read_line(&mut text).unwrap() > 0 {
            if text.contains("look-up of") {
                // The look-up was reported, so end the child's standard input, which lets the
                // look-up finish.
                go = None;
            }
        }
        drop(go);
        assert!(child.wait().unwrap().success(), "{text}");
        assert!(text.contains("1 blocking task,"), "{text}");
        assert!(text.contains("\"look-up of `a.named.injected`\""), "{text}");
        assert!(text.contains("net/lookup.rs") || text.contains("net\\lookup.rs"), "{text}");
        return;
    }
    let domain = Domain::new("named");
    let rt = runtime(4);
    drop(rt.spawn(find("a.named.injected".to_owned())));
    domain.wait_for_calls(1);
    let opener = thread::spawn(move || {
        // Waits until the parent has read the report that the shutdown waits for the look-up.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        domain.let_return();
    });
    drop(rt);
    opener.join().unwrap();
}

#[test]
fn a_lookup_shows_by_name_in_a_dump() {
    let domain = Domain::new("dumped");
    let rt = runtime(4);
    let lookup = rt.spawn(find("a.dumped.injected".to_owned()));
    domain.wait_for_calls(1);
    let dump = rt.handle().dump_now();
    let names: Vec<_> = dump.tasks().iter().filter_map(|task| task.name()).collect();
    assert_eq!(names, ["look-up of `a.dumped.injected`"]);
    domain.let_return();
    rt.block_on(lookup).unwrap().unwrap();
    rt.block_on(task::yield_now());
}
