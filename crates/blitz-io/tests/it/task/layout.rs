//! Tests futures and outputs of every size and alignment.

use std::{
    future::Future,
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll},
};

use blitz_io::{runtime::Runtime, task};

use crate::support::{
    runtimes::{all_kinds, workers},
    watchdog,
};

/// A future that yields twice and checks each time that its bytes and its address are unchanged.
struct Filled<const BYTES: usize, A> {
    bytes: [u8; BYTES],
    align: [A; 0],
    polls: u8,
    place: usize,
    _pinned: PhantomPinned,
}

impl<const BYTES: usize, A: Copy> Future for Filled<BYTES, A> {
    type Output = Out<BYTES, A>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let place = std::ptr::from_ref(&*self).addr();
        assert_eq!(place % align_of::<Self>(), 0, "a future is not aligned");
        // SAFETY: nothing is moved out of the pinned value.
        let this = unsafe { self.get_unchecked_mut() };
        assert!(this.bytes.iter().all(|byte| *byte == 0xA5), "a future lost its bytes");
        if this.polls == 0 {
            this.place = place;
        }
        assert_eq!(this.place, place, "a pinned future moved");
        this.polls += 1;
        if this.polls == 3 {
            return Poll::Ready(Out { bytes: this.bytes, align: [] });
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

struct Out<const BYTES: usize, A> {
    bytes: [u8; BYTES],
    align: [A; 0],
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line;

#[derive(Clone, Copy)]
#[repr(align(4096))]
struct Page;

fn goes_through<const BYTES: usize, A: Copy + Send + 'static>(rt: &Runtime) {
    for _ in 0..3 {
        // Boxed while it is passed around, because a debug build copies it often.
        let future = Box::new(Filled::<BYTES, A> {
            bytes: [0xA5; BYTES],
            align: [],
            polls: 0,
            place: 0,
            _pinned: PhantomPinned,
        });
        assert_eq!(future.align.len(), 0);
        let out = rt.block_on(rt.spawn(*future)).unwrap();
        assert_eq!(std::ptr::from_ref(&out).addr() % align_of::<A>(), 0);
        assert!(out.bytes.iter().all(|byte| *byte == 0xA5), "an output lost its bytes");
        assert_eq!(out.align.len(), 0);
    }
}

#[test]
fn futures_of_every_size_and_alignment_stay_put_and_whole() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        goes_through::<0, u8>(&rt);
        goes_through::<1, u8>(&rt);
        goes_through::<17, u128>(&rt);
        goes_through::<100, u64>(&rt);
        goes_through::<1_000, u8>(&rt);
        goes_through::<10_000, u64>(&rt);
        goes_through::<0, Line>(&rt);
        goes_through::<65, Line>(&rt);
        goes_through::<0, Page>(&rt);
        goes_through::<5_000, Page>(&rt);
    }
}

#[test]
fn a_future_of_a_mebibyte_goes_through() {
    let _watch = watchdog::start();
    // On a thread with enough stack for the copies that an unoptimised build makes.
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(|| {
        let rt = blitz_io::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_stack_size(64 << 20)
            .build()
            .unwrap();
        goes_through::<{ 1 << 20 }, u8>(&rt);
        goes_through::<{ 1 << 20 }, Page>(&rt);
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn futures_without_size_run_and_join() {
    let _watch = watchdog::start();
    struct Nothing;
    impl Future for Nothing {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }
    }
    for rt in all_kinds() {
        let tasks: Vec<_> = (0..100).map(|_| rt.spawn(Nothing)).collect();
        for task in tasks {
            rt.block_on(task).unwrap();
        }
    }
}

#[test]
fn large_and_over_aligned_futures_are_dropped_in_place_when_aborted() {
    let _watch = watchdog::start();
    #[repr(align(4096))]
    struct Big {
        bytes: [u8; 8192],
        place: Option<usize>,
    }
    impl Future for Big {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            self.place = Some(std::ptr::from_ref(&*self).addr());
            Poll::Pending
        }
    }
    impl Drop for Big {
        fn drop(&mut self) {
            let here = std::ptr::from_ref(self).addr();
            assert_eq!(here % 4096, 0);
            assert!(self.place.is_none_or(|place| place == here), "it moved before its drop");
            assert!(self.bytes.iter().all(|byte| *byte == 7));
        }
    }
    let rt = workers(2);
    for _ in 0..50 {
        let task = rt.spawn(Big { bytes: [7; 8192], place: None });
        task.abort();
        let error = rt.block_on(task).unwrap_err();
        assert!(error.is_cancelled(), "its drop panicked: {error}");
    }
}

#[test]
fn tasks_of_many_sizes_take_turns_in_the_same_memory() {
    let _watch = watchdog::start();
    async fn sized<const BYTES: usize>(seed: u8) -> u8 {
        let bytes = [seed; BYTES];
        task::yield_now().await;
        assert!(bytes.iter().all(|byte| *byte == seed));
        seed
    }
    let rt = workers(2);
    rt.block_on(rt.spawn(async {
        for round in 0..500_u32 {
            let seed = round.to_le_bytes()[0];
            let tasks = [
                blitz_io::spawn(sized::<1>(seed)),
                blitz_io::spawn(sized::<64>(seed)),
                blitz_io::spawn(sized::<300>(seed)),
                blitz_io::spawn(sized::<1_500>(seed)),
                blitz_io::spawn(sized::<9_000>(seed)),
            ];
            for task in tasks {
                assert_eq!(task.await.unwrap(), seed);
            }
        }
    }))
    .unwrap();
}
