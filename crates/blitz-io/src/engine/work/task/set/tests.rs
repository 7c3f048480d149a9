//! Models of a set, with real cells on a runtime that only queues.

use std::{
    future::{Future, ready},
    panic::Location,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use super::Set;
use crate::engine::{
    prim::{ids::Tally, model, thread},
    queue::injector::Injector,
    work::task::{
        arena::{Arena, Origin, Schedule},
        cell::{Label, Task},
        handle::JoinHandle,
        poll,
    },
};

/// A runtime that has an injector and no workers.
struct SetTestScheduler {
    injector: Injector<Task>,
    gone: Arc<Tally>,
}

impl Schedule for SetTestScheduler {
    fn schedule(&self, task: Task, _origin: Origin) {
        drop(self.injector.push(task));
    }

    fn cells_wait(&self, _arena: NonNull<Arena>) {}
}

impl Drop for SetTestScheduler {
    fn drop(&mut self) {
        self.gone.add();
    }
}

/// A waker that counts.
#[derive(Default)]
struct SetTestWaker(Tally);

impl Wake for SetTestWaker {
    fn wake(self: Arc<Self>) {
        self.0.add();
    }
}

/// A set, the arena of its members, and counters for the ends of both.
struct SetWorld {
    arena: NonNull<Arena>,
    scheduler: Arc<SetTestScheduler>,
    arena_gone: Arc<Tally>,
    shared_gone: Arc<Tally>,
    test_waker: Arc<SetTestWaker>,
}

impl SetWorld {
    fn new() -> (Self, Set<u8>) {
        let arena_gone = Arc::new(Tally::default());
        let scheduler =
            Arc::new(SetTestScheduler { injector: Injector::new(), gone: arena_gone.clone() });
        let shared_gone = Arc::new(Tally::default());
        let mut set = Set::new();
        let mut shared = set.node().shared;
        // SAFETY: no other thread has the shared part yet.
        unsafe { shared.as_mut() }.gone = Some(shared_gone.clone());
        let arena = Arena::new(scheduler.clone());
        let test_waker = Arc::default();
        (Self { arena, scheduler, arena_gone, shared_gone, test_waker }, set)
    }

    fn spawn(&self, set: &mut Set<u8>, future: impl Future<Output = u8> + Send + 'static) -> Task {
        let label = Label::with(Location::caller(), set.node());
        // SAFETY: the test holds the arena.
        let (task, header) = unsafe { Arena::spawn(self.arena, future, label) };
        // SAFETY: 1. this is a new task's join reference, of that output.
        let handle = unsafe { JoinHandle::new(header) };
        // SAFETY: 1. the task was made with this set's node just now.
        drop(unsafe { set.adopt(handle) });
        task
    }

    fn poll(&self, set: &mut Set<u8>) -> Poll<Option<u8>> {
        let waker = Waker::from(self.test_waker.clone());
        set.poll_next(&mut Context::from_waker(&waker))
            .map(|ended| ended.map(|(_, output)| output.expect("it was not cancelled")))
    }

    fn wakes(&self) -> u64 {
        self.test_waker.0.get()
    }

    /// Runs the tasks that were placed, closes the arena, and checks that nothing is left of it.
    fn end(self) {
        while let Some(task) = self.scheduler.injector.pop() {
            poll::run(task, 0);
        }
        // SAFETY: the test holds the arena, and gives it up.
        unsafe {
            self.arena.as_ref().refuse();
            while let Some(task) = self.arena.as_ref().next_to_stop() {
                poll::stop(task);
            }
            Arena::close(self.arena);
        }
        drop(self.scheduler);
        assert_eq!(self.shared_gone.get(), 1, "the shared part was not freed once");
        assert_eq!(self.arena_gone.get(), 1, "a cell is left, or was freed twice");
        // The slot's waker must be gone too: ours is the last.
        assert_eq!(Arc::strong_count(&self.test_waker), 1, "a waker is left");
    }
}

fn run(task: Task) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        poll::run(task, 0);
    })
}

#[test]
fn an_end_against_a_waiting_owner_wakes_or_is_seen() {
    model(|| {
        let (world, mut set) = SetWorld::new();
        let other = run(world.spawn(&mut set, ready(7)));
        let first = world.poll(&mut set);
        let pending = first.is_pending();
        other.join().unwrap();
        if pending {
            assert_eq!(world.wakes(), 1, "the end of a task woke no task");
            assert_eq!(world.poll(&mut set), Poll::Ready(Some(7)));
        } else {
            assert_eq!(first, Poll::Ready(Some(7)));
        }
        assert_eq!(world.poll(&mut set), Poll::Ready(None));
        drop(set);
        world.end();
    });
}

#[test]
fn two_ends_at_once_are_both_joined() {
    model(|| {
        let (world, mut set) = SetWorld::new();
        let tasks = [1, 2].map(|n| world.spawn(&mut set, ready(n)));
        let others = tasks.map(run);
        let mut sum = 0;
        if let Poll::Ready(output) = world.poll(&mut set) {
            sum += output.expect("two members");
        }
        for other in others {
            other.join().unwrap();
        }
        while let Poll::Ready(Some(output)) = world.poll(&mut set) {
            sum += output;
        }
        assert_eq!((sum, set.len()), (3, 0));
        drop(set);
        world.end();
    });
}

#[test]
fn a_waiter_that_changes_its_waker_against_an_end_is_sound() {
    model(|| {
        let (world, mut set) = SetWorld::new();
        let task = world.spawn(&mut set, ready(1));
        let idle = world.spawn(&mut set, ready(2));
        assert!(world.poll(&mut set).is_pending());
        let other = run(task);
        let another = Arc::new(SetTestWaker::default());
        let waker = Waker::from(another.clone());
        let mut cx = Context::from_waker(&waker);
        // Once to see the end, and once to wait: by then the slot may be lent.
        let seen = [set.poll_next(&mut cx), set.poll_next(&mut cx)];
        let joined = seen.iter().filter(|seen| seen.is_ready()).count();
        drop(waker);
        other.join().unwrap();
        if joined == 0 {
            assert!(world.wakes() + another.0.get() > 0, "the end of a task woke no task");
            assert_eq!(world.poll(&mut set), Poll::Ready(Some(1)));
        }
        poll::run(idle, 0);
        assert_eq!(world.poll(&mut set), Poll::Ready(Some(2)));
        drop(set);
        world.end();
    });
}

#[test]
fn an_end_against_the_drop_of_the_set_frees_all_once() {
    model(|| {
        let (world, mut set) = SetWorld::new();
        let other = run(world.spawn(&mut set, ready(7)));
        drop(set);
        other.join().unwrap();
        world.end();
    });
}

#[test]
fn two_ends_against_a_drop_with_a_waiter_free_all_once() {
    model(|| {
        let (world, mut set) = SetWorld::new();
        let tasks = [1, 2].map(|n| world.spawn(&mut set, ready(n)));
        assert!(world.poll(&mut set).is_pending());
        let others = tasks.map(run);
        drop(set);
        for other in others {
            other.join().unwrap();
        }
        world.end();
    });
}

#[test]
fn giving_all_up_against_an_end_frees_all_once() {
    model(|| {
        let (world, mut set) = SetWorld::new();
        let other = run(world.spawn(&mut set, ready(7)));
        assert!(matches!(world.poll(&mut set), Poll::Pending | Poll::Ready(Some(7))));
        let waited = !set.is_empty();
        set.detach_all();
        assert_eq!(world.poll(&mut set), Poll::Ready(None));
        other.join().unwrap();
        assert!(!waited || world.wakes() == 1, "the waiter was not woken: {}", world.wakes());
        drop(set);
        world.end();
    });
}

#[test]
fn an_abort_of_all_against_an_end_joins_once() {
    model(|| {
        let (world, mut set) = SetWorld::new();
        let other = run(world.spawn(&mut set, ready(7)));
        set.abort_all();
        let early = set.try_next();
        other.join().unwrap();
        while let Some(task) = world.scheduler.injector.pop() {
            poll::run(task, 0);
        }
        let (_, output) = early.or_else(|| set.try_next()).expect("it has ended");
        assert!(output.map_or_else(|error| error.is_cancelled(), |output| output == 7));
        assert!(set.is_empty() && set.try_next().is_none());
        drop(set);
        world.end();
    });
}

#[test]
fn a_stop_of_a_queued_member_against_the_drop_of_the_set_frees_all_once() {
    model(|| {
        let (world, mut set) = SetWorld::new();
        let task = world.spawn(&mut set, ready(7));
        let header = task.into_header();
        // SAFETY: 1. `into_header` gave the entry to us; from here on the injector has it.
        drop(world.scheduler.injector.push(unsafe { Task::new(header) }));
        let other = thread::spawn(move || drop(set));
        // SAFETY: the arena keeps the task, because nothing was freed into it yet.
        unsafe {
            world.arena.as_ref().refuse();
            while let Some(task) = world.arena.as_ref().next_to_stop() {
                poll::stop(task);
            }
        }
        other.join().unwrap();
        world.end();
    });
}

#[cfg(not(blitz_loom))]
#[test]
fn a_member_with_a_name_is_found_as_one_without() {
    let (world, mut set) = SetWorld::new();
    let extra = super::Named::new(set.node(), "a name");
    let label = Label::with(Location::caller(), extra);
    // SAFETY: the test holds the arena.
    let (task, header) = unsafe { Arena::spawn(world.arena, ready(7), label) };
    // SAFETY: 1. this is a new task's join reference, of that output.
    let handle = unsafe { JoinHandle::new(header) };
    // SAFETY: 1. the task was made with this set's node just now.
    drop(unsafe { set.adopt(handle) });
    poll::run(task, 0);
    assert_eq!(world.poll(&mut set), Poll::Ready(Some(7)));
    drop(set);
    world.end();
}

#[cfg(not(blitz_loom))]
#[test]
fn members_are_joined_in_the_order_in_which_they_end() {
    let (world, mut set) = SetWorld::new();
    let tasks: Vec<_> = (0..6).map(|n| world.spawn(&mut set, ready(n))).collect();
    let mut tasks: Vec<_> = tasks.into_iter().map(Some).collect();
    for n in [3, 0, 5] {
        poll::run(tasks[n].take().expect("each runs once"), 0);
    }
    assert_eq!(world.poll(&mut set), Poll::Ready(Some(3)));
    for n in [1, 4, 2] {
        poll::run(tasks[n].take().expect("each runs once"), 0);
    }
    let rest: Vec<_> =
        std::iter::from_fn(|| set.try_next()).map(|ended| ended.1.unwrap()).collect();
    assert_eq!(rest, [0, 5, 1, 4, 2]);
    drop(set);
    world.end();
}

#[cfg(not(blitz_loom))]
#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn a_member_is_four_words_larger() {
    use super::super::cell::Cell;
    type PlainCell = Cell<std::future::Ready<u64>>;
    type MemberCell = Cell<std::future::Ready<u64>, super::SetNode>;
    assert_eq!(size_of::<MemberCell>() - size_of::<PlainCell>(), 32);
}
