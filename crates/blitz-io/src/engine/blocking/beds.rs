//! Beds: the places where idle threads of the blocking pool sleep, with a mark for each.
//!
//! Beds are numbered from zero and are allocated in wards of 64, when the first thread needs one of
//! them: most runtimes never have a second ward. A ward has its marks in one word. A spawner takes
//! the lowest mark, so that the same few threads stay warm, and the others are left alone until
//! their time-out.
//!
//! # Invariants
//! A bed belongs to one thread at a time (`roster` assigns them). Its `called` is set once for each
//! mark that another thread took, after that mark was taken, and is cleared by the thread of the
//! bed; a token in the parker alone means nothing.
//!
//! # Checked by
//! The models of `crew`.

use crate::engine::prim::{
    AtomicBool, AtomicU64, Mutex, OnceLock,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    backoff::Backoff,
    pad::CachePadded,
    parker::Parker,
    thread, weakened,
};

/// Number of beds in a ward: the bits of a word.
const WARD: usize = u64::BITS as usize;

/// A place for one thread to sleep, with the state that it shares with other threads.
pub(crate) struct Bed<E, R> {
    pub(crate) parker: Parker,
    /// Set after another thread took the mark and left its spare work, if it has one.
    called: AtomicBool,
    /// The spare work that the thread is woken for; `None` if it is woken for a job.
    pub(crate) spare_work: Mutex<Option<E>>,
    /// The job that the thread runs.
    pub(crate) running: Mutex<Option<R>>,
}

struct Ward<E, R> {
    /// One bit for each bed whose thread may be woken.
    marks: CachePadded<AtomicU64>,
    beds: Box<[CachePadded<Bed<E, R>>]>,
}

/// All beds of a blocking pool, in wards of 64.
pub(crate) struct Beds<E, R> {
    wards: Box<[OnceLock<Ward<E, R>>]>,
}

impl<E, R> Beds<E, R> {
    /// Creates at least `count` beds.
    pub(crate) fn new(count: usize) -> Self {
        Self { wards: (0..count.div_ceil(WARD)).map(|_| OnceLock::new()).collect() }
    }

    /// Returns the number of beds, allocated or not.
    pub(crate) fn count(&self) -> usize {
        self.wards.len() * WARD
    }

    /// Allocates the ward of the bed, if that was not done before.
    pub(crate) fn make(&self, bed: usize) {
        self.wards[bed / WARD].get_or_init(Ward::new);
    }

    pub(crate) fn bed(&self, bed: usize) -> &Bed<E, R> {
        &self.ward(bed).beds[bed % WARD]
    }

    /// Returns all beds that were allocated.
    pub(crate) fn made(&self) -> impl Iterator<Item = &Bed<E, R>> {
        let wards = self.wards.iter().filter_map(|ward| ward.get());
        wards.flat_map(|ward| ward.beds.iter().map(|bed| &**bed))
    }

    /// Marks the bed: from now on its thread may be woken.
    pub(crate) fn mark(&self, bed: usize) {
        // AcqRel: each time the mark is set it has one taker, which sees what the thread did
        // before. Pairs with `take_mark`.
        self.ward(bed).marks.fetch_or(bit(bed), AcqRel);
    }

    /// Takes the mark of the bed; returns `false` if another thread has taken it.
    pub(crate) fn take_mark(&self, bed: usize) -> bool {
        take(&self.ward(bed).marks, bit(bed))
    }

    /// Returns true if no thread has taken the mark of the bed.
    pub(crate) fn is_marked(&self, bed: usize) -> bool {
        // Acquire: pairs with `take_mark`; the taker will most likely wake the thread.
        self.ward(bed).marks.load(Acquire) & bit(bed) != 0
    }

    /// Takes the lowest mark. The caller knows that there is one for it, now, or once threads that
    /// hold their own mark put it back.
    pub(crate) fn take_any_mark(&self) -> usize {
        let mut backoff = Backoff::default();
        loop {
            for (index, ward) in self.wards.iter().enumerate() {
                let Some(ward) = ward.get() else { continue };
                // Relaxed: a guess; `take` decides.
                let mut marks = ward.marks.load(Relaxed);
                while marks != 0 {
                    let lowest = marks & marks.wrapping_neg();
                    if take(&ward.marks, lowest) {
                        return index * WARD + lowest.trailing_zeros() as usize;
                    }
                    marks &= !lowest;
                }
            }
            if !backoff.spin() {
                thread::yield_now();
            }
        }
    }

    /// Wakes the thread of the bed; the caller must have taken its mark.
    pub(crate) fn call(&self, bed: usize) {
        let bed = self.bed(bed);
        if weakened!("crew_calls_before_it_wakes") {
            bed.parker.unpark();
            // Relaxed: the weakened order is wrong in any case.
            bed.called.swap(true, Relaxed);
            return;
        }
        // Release: publishes the spare work and all else that the caller did. Pairs with `answer`.
        // An exchange, as there, because loom keeps only exchanges in one order.
        bed.called.swap(true, Release);
        bed.parker.unpark();
    }

    /// Waits for the wake-up by the thread that took our mark.
    pub(crate) fn answer(&self, bed: usize) {
        let bed = self.bed(bed);
        // AcqRel: pairs with the Release in `call`.
        while !bed.called.swap(false, AcqRel) {
            bed.parker.park();
        }
    }

    fn ward(&self, bed: usize) -> &Ward<E, R> {
        self.wards[bed / WARD].get().expect("a bed is made before it is used")
    }
}

impl<E, R> Ward<E, R> {
    fn new() -> Self {
        // Models have few threads, and every atomic makes them slower.
        let count = if cfg!(blitz_loom) { 4 } else { WARD };
        let bed = || Bed {
            parker: Parker::new(),
            called: AtomicBool::new(false),
            spare_work: Mutex::new(None),
            running: Mutex::new(None),
        };
        Self {
            marks: CachePadded::new(AtomicU64::new(0)),
            beds: (0..count).map(|_| CachePadded::new(bed())).collect(),
        }
    }
}

fn bit(bed: usize) -> u64 {
    1 << (bed % WARD)
}

fn take(marks: &AtomicU64, bit: u64) -> bool {
    // AcqRel: each mark has one taker, which sees what its thread did before. Pairs with `mark`.
    marks.fetch_and(!bit, AcqRel) & bit != 0
}
