//! The counted operations of locks and channels, as `count_on` has those of tasks.
//!
//! Futures are polled by hand on a thread without a runtime, and there is no contention, so each is
//! ready at its first poll.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Returns the output of a future that must be ready at its first poll.
#[inline]
pub fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("there is nothing to wait for: check the workload"),
    }
}

/// Defines the benchmarks of one runtime crate; the file that calls it is a bench target.
#[macro_export]
macro_rules! count_sync_on {
    ($runtime:ident) => {
        use std::hint::black_box;

        use gungraun::prelude::*;
        use $crate::sync::now;
        use $runtime::sync::{Mutex, Notify, RwLock, Semaphore, mpsc, oneshot};

        const OPERATIONS: usize = 1000;

        /// Runs an operation once before it is counted, because the first use of a thread's state,
        /// of a lock or of a channel costs more.
        fn warm<T>(it: T, once: impl Fn(&T)) -> T {
            (0..2 * OPERATIONS).for_each(|_| once(&it));
            it
        }

        fn lock_once(mutex: &Mutex<u64>) {
            *now(black_box(mutex).lock()) += 1;
        }

        #[library_benchmark]
        #[bench::thousand(warm(Mutex::new(0), lock_once))]
        fn mutex_lock_and_unlock(mutex: Mutex<u64>) -> Mutex<u64> {
            (0..OPERATIONS).for_each(|_| lock_once(&mutex));
            mutex
        }

        fn read_once(lock: &RwLock<u64>) {
            black_box(*now(black_box(lock).read()));
        }

        #[library_benchmark]
        #[bench::thousand(warm(RwLock::new(0), read_once))]
        fn rwlock_read_and_release(lock: RwLock<u64>) -> RwLock<u64> {
            (0..OPERATIONS).for_each(|_| read_once(&lock));
            lock
        }

        fn write_once(lock: &RwLock<u64>) {
            *now(black_box(lock).write()) += 1;
        }

        #[library_benchmark]
        #[bench::thousand(warm(RwLock::new(0), write_once))]
        fn rwlock_write_and_release(lock: RwLock<u64>) -> RwLock<u64> {
            (0..OPERATIONS).for_each(|_| write_once(&lock));
            lock
        }

        fn acquire_once(semaphore: &Semaphore) {
            drop(now(black_box(semaphore).acquire()).expect("it is never closed"));
        }

        #[library_benchmark]
        #[bench::thousand(warm(Semaphore::new(1), acquire_once))]
        fn semaphore_acquire_and_release(semaphore: Semaphore) -> Semaphore {
            (0..OPERATIONS).for_each(|_| acquire_once(&semaphore));
            semaphore
        }

        type Ends = (mpsc::Sender<u64>, mpsc::Receiver<u64>);

        fn pass_on(mut ends: Ends) -> Ends {
            for number in 0..OPERATIONS as u64 {
                now(ends.0.send(black_box(number))).expect("the receiver is there");
                black_box(now(ends.1.recv()));
            }
            ends
        }

        // One value at a time through a channel with room for sixteen.
        #[library_benchmark]
        #[bench::thousand(pass_on(pass_on(mpsc::channel(16))))]
        fn mpsc_send_and_recv(ends: Ends) -> Ends {
            pass_on(ends)
        }

        type FreeEnds = (mpsc::UnboundedSender<u64>, mpsc::UnboundedReceiver<u64>);

        fn pass_on_freely(mut ends: FreeEnds) -> FreeEnds {
            for number in 0..OPERATIONS as u64 {
                ends.0.send(black_box(number)).expect("the receiver is there");
                black_box(now(ends.1.recv()));
            }
            ends
        }

        #[library_benchmark]
        #[bench::thousand(pass_on_freely(pass_on_freely(mpsc::unbounded_channel())))]
        fn mpsc_unbounded_send_and_recv(ends: FreeEnds) -> FreeEnds {
            pass_on_freely(ends)
        }

        fn oneshot_once(_: &()) {
            let (sender, receiver) = oneshot::channel();
            sender.send(black_box(1_u64)).expect("the receiver is there");
            black_box(now(receiver)).expect("it was sent");
        }

        // Create, send, receive, drop.
        #[library_benchmark]
        #[bench::thousand(warm((), oneshot_once))]
        fn oneshot_from_end_to_end(it: ()) {
            (0..OPERATIONS).for_each(|_| oneshot_once(&it));
        }

        fn notify_once(notify: &Notify) {
            black_box(notify).notify_one();
            now(notify.notified());
        }

        #[library_benchmark]
        #[bench::thousand(warm(Notify::new(), notify_once))]
        fn notify_one_and_notified(notify: Notify) -> Notify {
            (0..OPERATIONS).for_each(|_| notify_once(&notify));
            notify
        }

        library_benchmark_group!(
            name = sync,
            benchmarks = [
                mutex_lock_and_unlock,
                rwlock_read_and_release,
                rwlock_write_and_release,
                semaphore_acquire_and_release,
                mpsc_send_and_recv,
                mpsc_unbounded_send_and_recv,
                oneshot_from_end_to_end,
                notify_one_and_notified
            ]
        );

        main!(library_benchmark_groups = sync);
    };
}
