//! Models of the thread that sleeps in the io_uring selector and the threads that call it, with a
//! kernel of a few lines: a queue of completions, and a sleep that ends when there is one.

#[cfg(not(blitz_loom))]
use std::sync::Condvar;

use super::table::UringTable;
#[cfg(blitz_loom)]
use crate::engine::prim::Condvar;
use crate::engine::{
    driver::{backend::Events, interest::Interest, record_table::Token},
    prim::{Arc, Mutex, lock, model, store_lock::StoreLock, thread},
};

const TOKEN: Token = Token::from_bits(5);

struct UringWorld {
    table: StoreLock<UringTable>,
    queue: Mutex<CompletionQueue>,
    completed: Condvar,
}

#[derive(Default)]
struct CompletionQueue {
    completions: Vec<(Token, i32, bool)>,
    /// The number of completions that have ever been written.
    written: usize,
}

impl UringWorld {
    fn new() -> Arc<Self> {
        let (table, queue) =
            (StoreLock::new(UringTable::default()), Mutex::new(CompletionQueue::default()));
        Arc::new(Self { table, queue, completed: Condvar::new() })
    }

    /// Creates a world with one descriptor that has a poll.
    fn with_poll() -> Arc<Self> {
        let world = Self::new();
        let mut table = world.table.lock();
        assert!(table.add(3, TOKEN, Interest::WRITABLE));
        assert!(table.next_unarmed().is_some());
        drop(table);
        world
    }

    /// Writes a completion, as the kernel does.
    fn write(&self, token: Token, result: i32, more: bool) {
        let mut queue = lock(&self.queue);
        queue.completions.push((token, result, more));
        queue.written += 1;
        drop(queue);
        self.completed.notify_all();
    }

    fn sleep(&self) {
        let mut queue = lock(&self.queue);
        let taken = queue.written - queue.completions.len();
        while queue.written == taken {
            queue = self.completed.wait(queue).unwrap();
        }
    }

    fn reap(&self, table: &mut UringTable) {
        let completions = std::mem::take(&mut lock(&self.queue).completions);
        completions
            .into_iter()
            .for_each(|(token, result, more)| table.complete(token, result, more));
    }

    fn call(&self, table: &mut UringTable) {
        if table.take_call() {
            self.write(Token::NUDGE, 0, false);
        }
    }

    fn signal(&self) {
        let mut table = self.table.lock();
        table.nudged = true;
        self.call(&mut table);
    }

    /// Reaps for the waiting thread (R3).
    fn reap_for_another(&self) {
        let mut table = self.table.lock();
        if table.may_be_reaped() {
            self.reap(&mut table);
            if table.has_work() {
                self.call(&mut table);
            }
        }
    }

    /// Waits for events without a timeout, and returns their number (W1 to W4).
    fn wait(&self) -> usize {
        loop {
            let (mut table, mut events) = (self.table.lock(), Events::new(8));
            table.set_awake();
            self.reap(&mut table);
            let unarmed = std::iter::from_fn(|| table.next_unarmed()).map(|(token, ..)| token);
            let unarmed: Vec<Token> = unarmed.collect();
            if table.nudged || table.has_kept() {
                table.hand_out(&mut events);
                return events.found.len();
            }
            table.set_asleep();
            drop(table);
            // The polls that start report at once that their descriptors are writable.
            unarmed.into_iter().for_each(|token| self.write(token, libc::EPOLLOUT, true));
            self.sleep();
        }
    }
}

fn beside(
    world: &Arc<UringWorld>,
    f: impl FnOnce(&UringWorld) + Send + 'static,
) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || f(&world))
}

#[test]
fn a_descriptor_that_is_added_against_a_sleep_is_reported() {
    model(|| {
        let world = UringWorld::new();
        let adds = beside(&world, |world| {
            let mut table = world.table.lock();
            assert!(table.add(3, TOKEN, Interest::WRITABLE));
            world.call(&mut table);
        });
        assert_eq!(world.wait(), 1);
        adds.join().unwrap();
    });
}

#[test]
fn a_signal_against_a_sleep_ends_it() {
    model(|| {
        let world = UringWorld::new();
        let signals = beside(&world, UringWorld::signal);
        assert_eq!(world.wait(), 0);
        signals.join().unwrap();
    });
}

/// The waiting thread is about to sleep, its call is in the queue, and another thread reaps.
#[test]
fn a_call_is_left_to_the_called_thread() {
    model(|| {
        let world = UringWorld::new();
        let signals = beside(&world, UringWorld::signal);
        let reaps = beside(&world, UringWorld::reap_for_another);
        assert_eq!(world.wait(), 0);
        signals.join().unwrap();
        reaps.join().unwrap();
    });
}

#[test]
fn completions_reaped_by_another_thread_are_reported() {
    model(|| {
        let world = UringWorld::with_poll();
        let kernel = beside(&world, |world| world.write(TOKEN, libc::EPOLLOUT, true));
        let reaps = beside(&world, UringWorld::reap_for_another);
        assert_eq!(world.wait(), 1);
        kernel.join().unwrap();
        reaps.join().unwrap();
    });
}

/// The thread that the poll belongs to has exited.
#[test]
fn a_poll_whose_end_another_thread_reaps_is_armed_again() {
    model(|| {
        let world = UringWorld::with_poll();
        let kernel = beside(&world, |world| world.write(TOKEN, -libc::ECANCELED, false));
        let reaps = beside(&world, UringWorld::reap_for_another);
        assert_eq!(world.wait(), 1);
        kernel.join().unwrap();
        reaps.join().unwrap();
    });
}
