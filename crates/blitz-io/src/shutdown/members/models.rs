//! Models of spawns that run concurrently with a shutdown, under every interleaving.

use std::{future::poll_fn, sync::Arc as Plain};

use super::{End, HandleStored, Key, Members};
use crate::{
    engine::{
        prim::{AtomicUsize, Ordering::Relaxed, model, thread},
        wait::test_waker::block_on,
    },
    sync::CancellationToken,
};

/// A counter of how often a task was aborted.
type Handle = Plain<AtomicUsize>;

struct Shared {
    members: Members<Handle, ()>,
    begin_token: CancellationToken,
    /// Written by members with Relaxed ordering: the wait for the members must make it visible.
    work: AtomicUsize,
}

fn shared() -> Plain<Shared> {
    let (members, begin_token) = (Members::new(), CancellationToken::new());
    Plain::new(Shared { members, begin_token, work: AtomicUsize::new(0) })
}

impl Shared {
    /// Waits for the members (D1), and closes if there are none (D2).
    fn drain(&self) {
        loop {
            let mut wait = self.members.wait();
            block_on(poll_fn(|cx| self.members.poll_wait(&mut wait, cx)));
            self.members.end_wait(&mut wait);
            if self.members.close_if_empty() {
                return;
            }
        }
    }

    /// Runs a member: it stops when the token is cancelled, and not before.
    fn live(&self, key: Key) {
        block_on(self.begin_token.cancelled());
        // Relaxed: the wait for this member must order it.
        self.work.fetch_add(1, Relaxed);
        self.members.leave(key, End::Done, true);
        self.members.leave_tracker();
    }
}

#[test]
fn a_spawn_against_a_shutdown_is_refused_or_cancelled_and_waited_for() {
    model(|| {
        let shared = shared();
        let spawner = thread::spawn({
            let shared = shared.clone();
            move || {
                let Ok(key) = shared.members.enter(()) else { return 0 };
                assert!(matches!(
                    shared.members.store_handle(key, Handle::default()),
                    HandleStored::Member
                ));
                shared.members.spawned();
                shared.live(key);
                1
            }
        });
        shared.begin_token.cancel();
        shared.drain();
        // Relaxed: all admitted members have been waited for, and no further one is admitted.
        let seen = shared.work.load(Relaxed);
        assert_eq!(spawner.join().unwrap(), seen, "one was not waited for");
        assert_eq!(shared.members.outcome().finished, seen);
    });
}

#[test]
fn a_spawn_against_the_deadline_is_refused_or_aborted_once() {
    model(|| {
        let shared = shared();
        let spawner = thread::spawn({
            let shared = shared.clone();
            move || {
                let handle = Handle::default();
                let key = shared.members.enter(()).ok()?;
                match shared.members.store_handle(key, handle.clone()) {
                    HandleStored::Member => {}
                    HandleStored::Ended(_) => panic!("it has not ended"),
                    HandleStored::Closed(handle) => {
                        // Relaxed: a count, read after the join.
                        handle.fetch_add(1, Relaxed);
                    }
                }
                shared.members.spawned();
                Some(handle)
            }
        });
        for (_, entry) in shared.members.close() {
            if let Some(handle) = entry.handle {
                // Relaxed: a count, read after the join.
                handle.fetch_add(1, Relaxed);
            }
        }
        if let Some(handle) = spawner.join().unwrap() {
            // Relaxed: the join orders it.
            assert_eq!(handle.load(Relaxed), 1, "so often was it aborted");
            assert_eq!(shared.members.outcome().stuck.len(), 1);
        }
    });
}

#[test]
fn a_member_that_ends_at_once_leaves_nothing() {
    model(|| {
        let shared = shared();
        let handle = Handle::default();
        let key = shared.members.enter(()).expect("it is open");
        let member = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.members.leave(key, End::Done, false);
                shared.members.leave_tracker();
            }
        });
        match shared.members.store_handle(key, handle.clone()) {
            HandleStored::Member | HandleStored::Ended(_) => {}
            HandleStored::Closed(_) => panic!("it is open"),
        }
        shared.members.spawned();
        shared.drain();
        member.join().unwrap();
        assert_eq!(shared.members.len(), 0);
        assert_eq!(Plain::strong_count(&handle), 1, "a handle is left");
    });
}
