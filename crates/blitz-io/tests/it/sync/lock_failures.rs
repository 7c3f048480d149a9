//! Tests failures of locks and semaphores, futures that are dropped, and the state afterwards.

use std::{
    cell::Cell,
    fmt::Display,
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use blitz_io::sync::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard,
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit,
    RwLock, RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit,
    TryAcquireError,
};

use crate::support::{
    auto_traits::has, caught_panic::panic_of, drop_tally::Tally, manual_poll::poll_once, runtimes,
    watchdog,
};

type Waiting<T> = Pin<Box<dyn Future<Output = T>>>;

/// Polls a future once, which enters it into the wait queue.
#[track_caller]
fn in_line<T: 'static>(future: impl Future<Output = T> + 'static) -> Waiting<T> {
    let mut waiting: Waiting<T> = Box::pin(future);
    assert!(poll_once(&mut waiting).is_pending(), "it was free");
    waiting
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

#[test]
fn a_mutex_that_is_waited_for_and_given_up_is_free_afterwards() {
    let mutex = leak(Mutex::new(0));
    let shared = Arc::new(Mutex::new(0));
    let guards = (mutex.try_lock().unwrap(), shared.clone().try_lock_owned().unwrap());
    let (never_served, served) = (in_line(mutex.lock()), in_line(mutex.lock()));
    let (owned, owned_served) =
        (in_line(shared.clone().lock_owned()), in_line(shared.clone().lock_owned()));
    drop((never_served, owned));
    drop(guards);
    assert!(mutex.try_lock().is_err() && shared.try_lock().is_err(), "they were handed over");
    // Both were granted the lock and have not been polled since.
    drop((served, owned_served));
    assert!(mutex.try_lock().is_ok() && shared.try_lock().is_ok());
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn a_read_write_lock_that_is_waited_for_and_given_up_is_free_afterwards() {
    let lock = Arc::new(RwLock::with_max_readers(0, 3));
    for _ in 0..2 {
        let reader = lock.clone().try_read_owned().unwrap();
        let mut waiting: Vec<Waiting<()>> = Vec::new();
        for _ in 0..2 {
            let (one, two) = (lock.clone(), lock.clone());
            waiting.push(in_line(async move { drop(one.write_owned().await) }));
            waiting.push(in_line(async move { drop(two.read_owned().await) }));
            let (one, two) = (lock.clone(), lock.clone());
            waiting.push(in_line(async move { drop(one.write().await) }));
            waiting.push(in_line(async move { drop(two.read().await) }));
        }
        // From the middle, then the first, which has two of three permits.
        drop(waiting.remove(3));
        drop(waiting.remove(0));
        drop(reader);
        drop(waiting);
        assert!(lock.try_write().is_ok(), "a permit is missing");
        assert_eq!(Arc::strong_count(&lock), 1);
    }
}

#[test]
fn a_semaphore_that_is_waited_for_and_given_up_has_all_its_permits() {
    let semaphore = Arc::new(Semaphore::new(3));
    let two = semaphore.clone().try_acquire_many_owned(2).unwrap();
    let many = in_line(semaphore.clone().acquire_many_owned(3));
    let mut one = in_line(semaphore.clone().acquire_owned());
    assert_eq!(semaphore.available_permits(), 0, "the first in the queue has it");
    drop(many);
    let Poll::Ready(Ok(one)) = poll_once(&mut one) else { panic!("it was passed on") };
    let borrowed = {
        let semaphore = semaphore.clone();
        in_line(async move { semaphore.acquire_many(2).await.map(drop) })
    };
    drop((one, two));
    drop(borrowed);
    assert_eq!((semaphore.available_permits(), Arc::strong_count(&semaphore)), (3, 1));
}

#[test]
fn no_lock_request_overtakes_the_wait_queue() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.clone().try_lock_owned().unwrap();
    let mut first = in_line(mutex.clone().lock_owned());
    let mut second = in_line(mutex.clone().lock_owned());
    drop(guard);
    assert!(mutex.try_lock().is_err());
    assert!(poll_once(&mut second).is_pending());
    let Poll::Ready(guard) = poll_once(&mut first) else { panic!("it was its turn") };
    drop(guard);
    assert!(poll_once(&mut second).is_ready());
}

#[test]
fn a_writer_keeps_later_readers_waiting_and_earlier_ones_go_on() {
    let lock = Arc::new(RwLock::new(0));
    let early = lock.clone().try_read_owned().unwrap();
    let mut writer = in_line(lock.clone().write_owned());
    let mut late = in_line(lock.clone().read_owned());
    assert!(lock.try_read().is_err());
    drop(early);
    assert!(poll_once(&mut late).is_pending());
    let Poll::Ready(mut guard) = poll_once(&mut writer) else { panic!("it was its turn") };
    *guard = 1;
    // Waiting readers are admitted as soon as the guard only reads.
    let reader = guard.downgrade();
    let Poll::Ready(late) = poll_once(&mut late) else { panic!("it may read") };
    assert_eq!((*reader, *late), (1, 1));
}

#[test]
fn a_closed_semaphore_refuses_queued_waiters_and_takes_permits_back() {
    let semaphore = Arc::new(Semaphore::new(1));
    let permit = semaphore.clone().try_acquire_owned().unwrap();
    let mut waiting = in_line(semaphore.clone().acquire_owned());
    semaphore.close();
    let Poll::Ready(Err(error)) = poll_once(&mut waiting) else { panic!("it was closed") };
    assert_eq!(error.to_string(), "semaphore closed");
    drop(permit);
    assert_eq!(semaphore.available_permits(), 1);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
    assert!(semaphore.try_acquire_many(0).is_err());
}

#[test]
fn locks_take_budget() {
    let _watch = watchdog::start();
    let rt = runtimes::one_thread();
    let over = Arc::new(AtomicBool::new(false));
    let (mutex, lock, semaphore) = (Mutex::new(0u64), RwLock::new(0u64), Semaphore::new(1));
    rt.block_on(async {
        for kind in 0..4 {
            over.store(false, Relaxed);
            let other = blitz_io::spawn({
                let over = over.clone();
                async move { over.store(true, Relaxed) }
            });
            // The other task runs only if the locks yield: there is one thread, and no lock is
            // contended.
            while !over.load(Relaxed) {
                match kind {
                    0 => *mutex.lock().await += 1,
                    1 => *lock.write().await += 1,
                    2 => drop(lock.read().await),
                    _ => drop(semaphore.acquire().await.unwrap()),
                }
            }
            other.await.unwrap();
        }
    });
}

/// Polls like a task that has no budget left.
async fn poll_without_budget<T>(waiting: &mut Waiting<T>) -> Poll<T> {
    while poll_once(&mut (Box::pin(blitz_io::task::consume_budget()) as Waiting<()>)).is_ready() {}
    poll_once(waiting)
}

#[test]
fn a_task_without_budget_enters_the_wait_queue_and_takes_no_free_lock() {
    let mutex = Arc::new(Mutex::new(0));
    runtimes::one_thread().block_on(async {
        let mut free: Waiting<_> = Box::pin(mutex.clone().lock_owned());
        assert!(poll_without_budget(&mut free).await.is_pending());
        let guard = mutex.try_lock().expect("no task holds it");
        let mut first: Waiting<_> = Box::pin(mutex.clone().lock_owned());
        assert!(poll_without_budget(&mut first).await.is_pending());
        let mut second = in_line(mutex.clone().lock_owned());
        drop(guard);
        assert!(poll_once(&mut second).is_pending(), "it was overtaken");
        drop((free, first));
        blitz_io::task::yield_now().await;
        assert!(poll_once(&mut second).is_ready());
    });
}

#[test]
fn a_panic_with_a_guard_unlocks_and_does_not_poison() {
    let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
    let text = panic_of(|| {
        MutexGuard::map(mutex.try_lock().unwrap(), |_| -> &mut i32 { panic!("in map") })
    });
    assert_eq!(text.message, "in map");
    assert_eq!(*mutex.try_lock().expect("it is free"), 1);
    let guard = lock.try_write().unwrap();
    panic_of(move || RwLockWriteGuard::downgrade_map(guard, |_| -> &i32 { panic!("in map") }));
    let guard = lock.try_write().expect("it is free");
    let mapped = RwLockWriteGuard::into_mapped(guard);
    panic_of(move || RwLockMappedWriteGuard::map(mapped, |_| -> &mut i32 { panic!("in map") }));
    let reader = lock.try_read().expect("it is free");
    panic_of(move || RwLockReadGuard::map(reader, |_| -> &i32 { panic!("in map") }));
    assert!(lock.try_write().is_ok());
}

#[test]
fn guards_that_are_mapped_give_back_what_the_first_took() {
    let (mutex, lock) = (Arc::new(Mutex::new((1, 2))), Arc::new(RwLock::new((1, 2))));
    for _ in 0..3 {
        let guard = MutexGuard::map(mutex.try_lock().unwrap(), |pair| &mut pair.0);
        let guard = MappedMutexGuard::try_map(guard, |_| None::<&mut i32>).unwrap_err();
        assert!(mutex.try_lock().is_err());
        drop(MappedMutexGuard::map(guard, |one| one));
        let guard = mutex.clone().try_lock_owned().unwrap();
        let guard = OwnedMutexGuard::try_map(guard, |_| None::<&mut i32>).unwrap_err();
        let guard = OwnedMutexGuard::map(guard, |pair| &mut pair.1);
        let guard = OwnedMappedMutexGuard::try_map(guard, |_| None::<&mut i32>).unwrap_err();
        assert!(mutex.try_lock().is_err());
        drop(OwnedMappedMutexGuard::map(guard, |two| two));

        let guard = RwLockWriteGuard::map(lock.try_write().unwrap(), |pair| &mut pair.0);
        let guard = RwLockMappedWriteGuard::try_map(guard, |_| None::<&mut i32>).unwrap_err();
        assert!(lock.try_read().is_err());
        drop(RwLockMappedWriteGuard::map(guard, |one| one));
        let guard = lock.clone().try_write_owned().unwrap();
        let guard = OwnedRwLockWriteGuard::map(guard, |pair| &mut pair.1);
        let guard = OwnedRwLockMappedWriteGuard::try_map(guard, |_| None::<&mut i32>).unwrap_err();
        assert!(lock.try_read().is_err());
        drop(OwnedRwLockMappedWriteGuard::map(guard, |two| two));

        let guard = lock.try_write().unwrap();
        let guard = RwLockWriteGuard::try_downgrade_map(guard, |_| None::<&i32>).unwrap_err();
        assert!(lock.try_read().is_err(), "it still writes");
        let reader = RwLockWriteGuard::downgrade_map(guard, |pair| &pair.0);
        let owned =
            OwnedRwLockReadGuard::map(lock.clone().try_read_owned().unwrap(), |pair| &pair.1);
        assert!(lock.try_write().is_err());
        drop((RwLockReadGuard::map(reader, |one| one), owned));
        assert!(lock.try_write().is_ok() && mutex.try_lock().is_ok());
    }
    assert_eq!((Arc::strong_count(&mutex), Arc::strong_count(&lock)), (1, 1));
}

#[test]
fn locks_hold_values_of_unknown_size() {
    let mutex: Arc<Mutex<dyn Display + Send>> = Arc::new(Mutex::new(5));
    assert_eq!(mutex.try_lock().unwrap().to_string(), "5");
    assert_eq!(mutex.clone().try_lock_owned().unwrap().to_string(), "5");
    let lock: Box<RwLock<[u8]>> = Box::new(RwLock::new([1, 2, 3]));
    lock.try_write().unwrap()[0] = 4;
    assert_eq!(RwLockReadGuard::map(lock.try_read().unwrap(), |all| &all[..2])[..], [4, 2]);
    assert_eq!(lock.try_write().unwrap().downgrade().len(), 3);
}

#[test]
fn a_value_is_dropped_once() {
    let tally = Tally::new();
    drop(Mutex::new(tally.token()));
    drop(RwLock::new(tally.token()));
    assert_eq!(tally.dropped(), 2);
    let value = Mutex::new(tally.token()).into_inner();
    let value = RwLock::new(value).into_inner();
    assert_eq!(tally.dropped(), 2);
    drop(value);
    assert_eq!(tally.dropped(), 3);
    let shared = Arc::new(Mutex::new(tally.token()));
    let guard = OwnedMutexGuard::map(shared.try_lock_owned().unwrap(), |value| value);
    assert_eq!(tally.dropped(), 3);
    drop(guard);
    assert_eq!(tally.dropped(), 4);
    let shared = Arc::new(RwLock::new(tally.token()));
    let guard = shared.try_write_owned().unwrap().downgrade();
    assert_eq!(tally.dropped(), 4);
    drop(guard);
    tally.assert_all_dropped(5);
}

#[test]
fn impossible_permit_counts_panic_at_the_callers_line() {
    let too_many = Semaphore::MAX_PERMITS + 1;
    let full = Semaphore::new(Semaphore::MAX_PERMITS);
    let of = |caught: crate::support::caught_panic::Caught, text: &str, line: u32| {
        assert!(caught.message.starts_with(text), "{}", caught.message);
        assert_eq!((caught.file.as_str(), caught.line), (file!(), line));
    };
    let text = "a semaphore may not have more than MAX_PERMITS permits";
    of(panic_of(|| Semaphore::new(too_many)), text, line!());
    of(panic_of(|| Semaphore::const_new(too_many)), text, line!());
    let text = "number of added permits (1) would overflow MAX_PERMITS";
    of(panic_of(|| full.add_permits(1)), text, line!());
    let text = "cannot add more than MAX_PERMITS permits";
    of(panic_of(|| full.add_permits(too_many)), text, line!());
    assert_eq!(full.available_permits(), Semaphore::MAX_PERMITS, "nothing has changed");
    let text = "a RwLock may not be created with 0 readers";
    of(panic_of(|| RwLock::with_max_readers(1, 0)), text, line!());
    let text = "a RwLock may not be created with more than 536870911 readers";
    of(panic_of(|| RwLock::with_max_readers(1, (u32::MAX >> 3) + 1)), text, line!());
    drop(RwLock::with_max_readers(1, u32::MAX >> 3));
}

#[test]
fn permits_of_two_semaphores_are_not_merged_and_return_to_their_own() {
    let (one, two) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
    let text = "merging permits from different semaphore instances";
    let mut permit = one.try_acquire().unwrap();
    let stranger = two.try_acquire().unwrap();
    let caught = panic_of(|| permit.merge(stranger));
    assert!(caught.message.starts_with(text) && caught.file == file!(), "{caught:?}");
    assert_eq!((permit.num_permits(), two.available_permits()), (1, 1));
    drop(permit);
    let mut permit = one.clone().try_acquire_owned().unwrap();
    let stranger = two.clone().try_acquire_owned().unwrap();
    let caught = panic_of(|| permit.merge(stranger));
    assert!(caught.message.starts_with(text) && caught.file == file!(), "{caught:?}");
    drop(permit);
    assert_eq!((one.available_permits(), two.available_permits()), (1, 1));
}

#[test]
fn blocking_inside_async_code_is_refused_where_it_was_called() {
    let rt = runtimes::one_thread();
    let (mutex, lock) = (Arc::new(Mutex::new(1)), RwLock::new(1));
    let semaphore = Arc::new(Semaphore::new(1));
    let text = "Cannot block the current thread from within a runtime";
    let refused = |f: &dyn Fn()| {
        let caught = panic_of(|| rt.block_on(async { f() }));
        assert!(caught.message.starts_with(text), "{}", caught.message);
        assert_eq!(caught.file, file!());
    };
    refused(&|| drop(mutex.blocking_lock()));
    refused(&|| drop(mutex.clone().blocking_lock_owned()));
    refused(&|| drop(lock.blocking_read()));
    refused(&|| drop(lock.blocking_write()));
    refused(&|| drop(semaphore.blocking_acquire()));
    refused(&|| drop(semaphore.blocking_acquire_many(1)));
    refused(&|| drop(semaphore.clone().blocking_acquire_owned()));
    refused(&|| drop(semaphore.clone().blocking_acquire_many_owned(1)));
    assert!(mutex.try_lock().is_ok() && lock.try_write().is_ok());
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn a_thread_that_blocks_is_served_in_its_turn() {
    let _watch = watchdog::start();
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.clone().blocking_lock_owned();
    let thread = std::thread::spawn({
        let mutex = mutex.clone();
        move || *mutex.blocking_lock() += 1
    });
    drop(guard);
    thread.join().unwrap();
    assert_eq!(*mutex.blocking_lock(), 1);
}

#[test]
fn many_tasks_exclude_each_other() {
    let _watch = watchdog::start();
    for rt in runtimes::all_kinds() {
        let (mutex, lock) = (Arc::new(Mutex::new(0)), Arc::new(RwLock::with_max_readers(0, 3)));
        let (semaphore, inside) = (Arc::new(Semaphore::new(3)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..50)
            .map(|n| {
                let (mutex, lock, semaphore, inside) =
                    (mutex.clone(), lock.clone(), semaphore.clone(), inside.clone());
                rt.spawn(async move {
                    for _ in 0..20 {
                        let mut guard = mutex.lock().await;
                        let before = *guard;
                        blitz_io::task::yield_now().await;
                        *guard = before + 1;
                        drop(guard);
                        let mut guard = lock.write().await;
                        *guard += 1;
                        let reader = if n % 2 == 0 {
                            guard.downgrade()
                        } else {
                            drop(guard);
                            lock.read().await
                        };
                        let seen = *reader;
                        blitz_io::task::yield_now().await;
                        assert_eq!(*reader, seen, "a writer came in between");
                        drop(reader);
                        let _permit = semaphore.acquire().await.unwrap();
                        assert!(inside.fetch_add(1, Relaxed) < 3);
                        blitz_io::task::yield_now().await;
                        inside.fetch_sub(1, Relaxed);
                    }
                })
            })
            .collect();
        for task in tasks {
            rt.block_on(task).unwrap();
        }
        assert_eq!((*mutex.blocking_lock(), *lock.blocking_read()), (1_000, 1_000));
        assert_eq!(semaphore.available_permits(), 3);
    }
}

#[test]
fn locks_show_what_they_hold() {
    let (mutex, lock) = (Mutex::new("value"), RwLock::new("value"));
    assert_eq!(format!("{mutex:?}"), "Mutex { data: \"value\" }");
    assert_eq!(format!("{lock:?}"), "RwLock { data: \"value\" }");
    let (guard, writer) = (mutex.try_lock().unwrap(), lock.try_write().unwrap());
    assert_eq!(format!("{mutex:?} {guard:?} {guard}"), "Mutex { data: <locked> } \"value\" value");
    assert_eq!(
        format!("{lock:?} {writer:?} {writer}"),
        "RwLock { data: <locked> } \"value\" value"
    );
    assert_eq!(format!("{:?}", Semaphore::new(3)), "Semaphore { permits: 3 }");
}

/// Types that are `Send` and `Sync` as their names say: `Y` for yes, `N` for no.
type NN = Rc<u8>;
type YN = Cell<u8>;
type YY = u8;

/// Returns whether the type is `Send`, `Sync` and `Unpin`.
macro_rules! moves {
    ($type:ty) => {
        (has!($type: Send), has!($type: Sync), has!($type: Unpin))
    };
}

#[test]
fn guards_move_as_their_values_may() {
    assert_eq!(moves!(Mutex<NN>), (false, false, true));
    assert_eq!(moves!(Mutex<YN>), (true, true, true));
    assert_eq!(moves!(MutexGuard<'static, NN>), (false, false, true));
    assert_eq!(moves!(MutexGuard<'static, YN>), (true, false, true));
    assert_eq!(moves!(MutexGuard<'static, YY>), (true, true, true));
    assert_eq!(moves!(MappedMutexGuard<'static, NN>), (false, false, true));
    assert_eq!(moves!(MappedMutexGuard<'static, YN>), (true, false, true));
    assert_eq!(moves!(MappedMutexGuard<'static, YY>), (true, true, true));
    assert_eq!(moves!(OwnedMutexGuard<NN>), (false, false, true));
    assert_eq!(moves!(OwnedMutexGuard<YN>), (true, false, true));
    assert_eq!(moves!(OwnedMutexGuard<YY>), (true, true, true));
    assert_eq!(moves!(OwnedMappedMutexGuard<NN, YY>), (false, false, true));
    assert_eq!(moves!(OwnedMappedMutexGuard<YY, NN>), (false, false, true));
    assert_eq!(moves!(OwnedMappedMutexGuard<YN, YY>), (true, false, true));
    assert_eq!(moves!(OwnedMappedMutexGuard<YY, YN>), (true, false, true));
    assert_eq!(moves!(OwnedMappedMutexGuard<YY, YY>), (true, true, true));
    assert_eq!(moves!(RwLock<NN>), (false, false, true));
    assert_eq!(moves!(RwLock<YN>), (true, false, true));
    assert_eq!(moves!(RwLock<YY>), (true, true, true));
    assert_eq!(moves!(RwLockReadGuard<'static, YN>), (false, false, true));
    assert_eq!(moves!(RwLockReadGuard<'static, YY>), (true, true, true));
    assert_eq!(moves!(RwLockWriteGuard<'static, YN>), (false, false, true));
    assert_eq!(moves!(RwLockWriteGuard<'static, YY>), (true, true, true));
    assert_eq!(moves!(RwLockMappedWriteGuard<'static, YN>), (false, false, true));
    assert_eq!(moves!(RwLockMappedWriteGuard<'static, YY>), (true, true, true));
    assert_eq!(moves!(OwnedRwLockReadGuard<YN>), (false, false, true));
    assert_eq!(moves!(OwnedRwLockReadGuard<YY, YN>), (false, false, true));
    assert_eq!(moves!(OwnedRwLockReadGuard<YY>), (true, true, true));
    assert_eq!(moves!(OwnedRwLockWriteGuard<YN>), (false, false, true));
    assert_eq!(moves!(OwnedRwLockWriteGuard<YY>), (true, true, true));
    assert_eq!(moves!(OwnedRwLockMappedWriteGuard<YN, YY>), (false, false, true));
    assert_eq!(moves!(OwnedRwLockMappedWriteGuard<YY, YN>), (false, false, true));
    assert_eq!(moves!(OwnedRwLockMappedWriteGuard<YY>), (true, true, true));
    assert_eq!(moves!(SemaphorePermit<'static>), (true, true, true));
    assert_eq!(moves!(OwnedSemaphorePermit), (true, true, true));
    assert_eq!(moves!(Semaphore), (true, true, true));
}

#[test]
fn futures_of_locks_may_move_and_be_shared() {
    fn moves<T: Send + Sync>(value: T) {
        drop(value);
    }
    let (mutex, lock) = (Arc::new(Mutex::new(Cell::new(1))), Arc::new(RwLock::new(1)));
    let semaphore = Arc::new(Semaphore::new(1));
    moves(mutex.lock());
    moves(mutex.clone().lock_owned());
    moves(lock.read());
    moves(lock.clone().read_owned());
    moves(lock.write());
    moves(lock.clone().write_owned());
    moves(semaphore.acquire());
    moves(semaphore.acquire_many(1));
    moves(semaphore.clone().acquire_owned());
    moves(semaphore.clone().acquire_many_owned(1));
}

/// A guard that borrows a mutex is one pointer; a read guard also points to the value.
#[cfg(not(debug_assertions))]
#[test]
fn guards_are_small() {
    let word = size_of::<usize>();
    assert_eq!(size_of::<MutexGuard<'_, u8>>(), word);
    assert_eq!(size_of::<RwLockWriteGuard<'_, u8>>(), word);
    assert_eq!(size_of::<RwLockReadGuard<'_, u8>>(), 2 * word);
    assert_eq!(size_of::<OwnedMutexGuard<u8>>(), word);
}

#[cfg(not(debug_assertions))]
#[test]
fn release_builds_do_not_record_lock_holders() {
    let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
    let _guards = (mutex.try_lock().unwrap(), lock.try_read().unwrap());
    assert!(mutex.holder().is_none() && lock.holders().is_empty());
}

#[cfg(debug_assertions)]
mod held {
    use std::pin::pin;

    use blitz_io::task;

    use super::*;
    use crate::support::{gate::Gate, runtimes::workers};

    #[test]
    fn a_dump_of_a_deadlock_names_both_holders_and_where() {
        let _watch = watchdog::start();
        let rt = workers(2);
        let (a, b) = (Arc::new(Mutex::new("a")), Arc::new(RwLock::new("b")));
        let gate = Gate::new();
        let first = rt.spawn({
            let (a, b, gate) = (a.clone(), b.clone(), gate.clone());
            async move {
                let _a = a.lock().await;
                gate.opened().await;
                drop(b.write().await);
            }
        });
        let first_line = line!() - 5;
        let second = rt.spawn({
            let (a, b, gate) = (a.clone(), b.clone(), gate.clone());
            async move {
                let _b = b.read_owned().await;
                gate.opened().await;
                drop(a.lock_owned().await);
            }
        });
        let second_line = line!() - 5;
        watchdog::until(|| gate.waiting() == 2);
        gate.open();
        let mut text = String::new();
        watchdog::until(|| {
            let dump = rt.handle().dump_now();
            text = dump.to_string();
            let is_reported = |waits: task::Id, line: u32, holds: task::Id, held_line: u32| {
                let Some(found) = dump.tasks().iter().find(|found| found.id() == waits) else {
                    return false;
                };
                let [holder] = found.trace().lock_holders() else { return false };
                // The dump reads what the task waits for first, and the lock's holder second: the
                // task may have started to wait in between.
                if found.trace().waits_for() != Some("a lock") {
                    return false;
                }
                assert_eq!((holder.task(), holder.location().line()), (Some(holds), held_line));
                assert!(holder.location().file().ends_with("lock_failures.rs"));
                let requested = found.trace().lock_requested_at().expect("it waits");
                assert_eq!(requested.line(), line);
                true
            };
            is_reported(first.id(), first_line + 2, second.id(), second_line)
                && is_reported(second.id(), second_line + 2, first.id(), first_line)
        });
        let says = format!("held by task {}, at {}", second.id(), file!());
        assert!(text.contains(&says), "{text}");
        first.abort();
        rt.block_on(second).unwrap();
        assert!(a.holder().is_none() && b.holders().is_empty());
    }

    #[test]
    fn a_lock_records_its_holder_until_the_last_guard_ends() {
        let mutex = Arc::new(Mutex::new(1));
        assert!(mutex.holder().is_none());
        let guard = mutex.try_lock().unwrap();
        let line = line!() - 1;
        let holder = mutex.holder().unwrap();
        assert_eq!((holder.task(), holder.location().line()), (None, line));
        assert!(holder.to_string().starts_with("code outside of tasks, at "), "{holder}");
        assert!(format!("{holder:?}").starts_with("Holder { task: None, location: "));
        let guard = MutexGuard::map(guard, |value| value);
        assert_eq!(mutex.holder(), Some(holder));
        drop(guard);
        assert!(mutex.holder().is_none());
        let owned = OwnedMutexGuard::map(mutex.clone().blocking_lock_owned(), |value| value);
        assert_eq!(mutex.holder().unwrap().location().line(), line!() - 1);
        drop(owned);
        assert!(mutex.holder().is_none());
    }

    #[test]
    fn a_read_write_lock_knows_all_its_readers() {
        let lock = Arc::new(RwLock::new(1));
        let writer = lock.clone().try_write_owned().unwrap();
        let line = line!() - 1;
        let reader = writer.downgrade();
        let other = lock.blocking_read();
        let lines: Vec<_> = lock.holders().iter().map(|holder| holder.location().line()).collect();
        assert_eq!(lines, [line, line + 3]);
        drop(reader);
        assert_eq!(lock.holders().len(), 1);
        drop(other);
        assert!(lock.holders().is_empty());
    }

    #[test]
    fn a_lock_that_lies_where_another_was_held_for_ever_has_no_holder() {
        let mut mutex = Mutex::new(1);
        std::mem::forget(mutex.try_lock().unwrap());
        assert!(mutex.holder().is_some(), "a leaked guard holds for ever");
        mutex = Mutex::new(2);
        assert!(mutex.holder().is_none());
        let boxed = Box::new(mutex);
        assert!(boxed.holder().is_none() && boxed.try_lock().is_ok());
    }

    #[test]
    fn a_task_that_gave_up_waits_for_no_lock() {
        let _watch = watchdog::start();
        let rt = workers(1);
        let mutex = Arc::new(Mutex::new(1));
        let guard = mutex.try_lock().unwrap();
        let gate = Gate::new();
        let task = rt.spawn({
            let (mutex, gate) = (mutex.clone(), gate.clone());
            async move {
                {
                    let mut waiting = pin!(mutex.lock());
                    let polled = std::future::poll_fn(|cx| {
                        Poll::Ready(waiting.as_mut().poll(cx).is_pending())
                    });
                    assert!(polled.await);
                }
                gate.opened().await;
            }
        });
        watchdog::until(|| gate.waiting() == 1);
        let dump = crate::runtime::dump::whole(rt.handle());
        let found = dump.tasks().iter().find(|found| found.id() == task.id()).unwrap();
        assert!(found.trace().lock_requested_at().is_none());
        gate.open();
        rt.block_on(task).unwrap();
        drop(guard);
    }
}
