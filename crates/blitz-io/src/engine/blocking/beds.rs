//! Where the threads of a crew sleep: a bed each, and a mark for who lies in one.
//!
//! Beds are numbered from zero and made in wards of 64, when the first thread
//! needs one of them: most runtimes never have a second ward. A ward has its
//! marks in one word, and whoever calls takes the lowest mark: the same few
//! threads stay warm, and the others are left alone until their time is over.
//!
//! # Invariants
//! A bed belongs to one thread at a time (`roster` gives them out). Its `called`
//! is set once for each mark that somebody else took, after that mark was taken,
//! and cleared by the thread of the bed; a token in the parker alone says nothing.
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

/// Beds in a ward: the bits of a word.
const WARD: usize = u64::BITS as usize;

/// A place for one thread, with what others want it to know and what they may
/// know of it.
pub(crate) struct Bed<E, R> {
    pub(crate) parker: Parker,
    /// Whoever took the mark has said what it wants.
    called: AtomicBool,
    /// What the thread is called for, if not for a job.
    pub(crate) errand: Mutex<Option<E>>,
    /// What the thread runs.
    pub(crate) running: Mutex<Option<R>>,
}

struct Ward<E, R> {
    /// A bit for each bed whose thread may be called.
    marks: CachePadded<AtomicU64>,
    beds: Box<[CachePadded<Bed<E, R>>]>,
}

/// See the module.
pub(crate) struct Beds<E, R> {
    wards: Box<[OnceLock<Ward<E, R>>]>,
}

impl<E, R> Beds<E, R> {
    /// At least `count` beds.
    pub(crate) fn new(count: usize) -> Self {
        Self { wards: (0..count.div_ceil(WARD)).map(|_| OnceLock::new()).collect() }
    }

    /// How many there are, made or not.
    pub(crate) fn count(&self) -> usize {
        self.wards.len() * WARD
    }

    /// Sees that the bed is there.
    pub(crate) fn make(&self, bed: usize) {
        self.wards[bed / WARD].get_or_init(Ward::new);
    }

    pub(crate) fn bed(&self, bed: usize) -> &Bed<E, R> {
        &self.ward(bed).beds[bed % WARD]
    }

    /// All beds that were made.
    pub(crate) fn made(&self) -> impl Iterator<Item = &Bed<E, R>> {
        let wards = self.wards.iter().filter_map(|ward| ward.get());
        wards.flat_map(|ward| ward.beds.iter().map(|bed| &**bed))
    }

    /// Marks the bed: from now on its thread may be called.
    pub(crate) fn mark(&self, bed: usize) {
        // AcqRel: one taker for each time that it is set, and that one sees what its
        // thread did before. Pairs with `take_mark`.
        self.ward(bed).marks.fetch_or(bit(bed), AcqRel);
    }

    /// Takes the mark of the bed; `false` if somebody has it.
    pub(crate) fn take_mark(&self, bed: usize) -> bool {
        take(&self.ward(bed).marks, bit(bed))
    }

    /// Whether nobody has taken the mark of the bed.
    pub(crate) fn is_marked(&self, bed: usize) -> bool {
        // Acquire: pairs with `take_mark`; most likely the taker also calls.
        self.ward(bed).marks.load(Acquire) & bit(bed) != 0
    }

    /// Takes the lowest mark. The caller knows that there is one for it, now or when
    /// those who have one in their hands put it back.
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

    /// Calls the thread whose mark the caller took.
    pub(crate) fn call(&self, bed: usize) {
        let bed = self.bed(bed);
        if weakened!("crew_calls_before_it_wakes") {
            bed.parker.unpark();
            // Relaxed: it is wrong in any case.
            bed.called.swap(true, Relaxed);
            return;
        }
        // Release: the errand and whatever else the caller did. Pairs with `answer`. An
        // exchange, as there: loom keeps only those in one order.
        bed.called.swap(true, Release);
        bed.parker.unpark();
    }

    /// Waits for the call of whoever took our mark.
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
        // Models have few threads, and every atomic costs them.
        let count = if cfg!(blitz_loom) { 4 } else { WARD };
        let bed = || Bed {
            parker: Parker::new(),
            called: AtomicBool::new(false),
            errand: Mutex::new(None),
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
    // AcqRel: as in `mark`.
    marks.fetch_and(!bit, AcqRel) & bit != 0
}
