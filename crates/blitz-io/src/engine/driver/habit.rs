//! Whether a socket is likely to be empty after what was read: what its last reads tell.
//!
//! Readiness by edges means to read until the kernel says that nothing is left. With
//! requests of one size, or datagrams, or Unix streams, that is a call for each request
//! whose only answer is 'not yet'. But the answer is always the same: so after a few of
//! these the call is *postponed* (`postponed`), in the hope that the next event makes it
//! needless.
//!
//! Whether that pays is seen each time. Either the event comes in time; or it does not, and
//! the call is made in the end; or that call finds something, which has been there all the
//! while, or has just come. Where the bad cases prevail the socket is read at once again, and
//! has to show the habit for twice as long before it is trusted once more. So they cost
//! little, whatever a peer does.
//!
//! Only a guess, so all of it is relaxed: two who read at the same time confuse it, and lose
//! nothing but a call.

use crate::engine::prim::{AtomicU64, Ordering::Relaxed};

/// How often in a row a socket must have been empty, at first.
const DRY: u32 = 4;

/// Doublings of it at the most: 4 to 256.
const MOST_DOUBLINGS: u32 = 6;

/// The most that is counted; so many events in time undo a doubling.
const MOST: u32 = DRY << MOST_DOUBLINGS;

/// What a call counts that was made in the end for nothing. An event in time counts one the
/// other way.
const LATE: u32 = 1;

/// What it counts if something was there: it has waited.
const WAITED: u32 = 4;

/// So much is too much.
const TOO_MUCH: u32 = 12;

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Known {
    /// How often in a row it was empty, or the event came in time.
    dry: u32,
    doublings: u32,
    /// What speaks against it: less than [`TOO_MUCH`].
    bad: u32,
    /// What was read last may not be all, by the event of that tick.
    more: Option<u16>,
    /// The call was postponed.
    postponed: bool,
}

const DRY_BITS: u32 = 0x1ff;
const DOUBLINGS_AT: u32 = 9;
const BAD_AT: u32 = 12;
const MORE: u32 = 1 << 16;
const POSTPONED: u32 = 1 << 17;
const TICK_AT: u32 = 32;

impl Known {
    fn from_bits(bits: u64) -> Self {
        let low = bits as u32;
        Self {
            dry: low & DRY_BITS,
            doublings: low >> DOUBLINGS_AT & 7,
            bad: low >> BAD_AT & 15,
            more: (low & MORE != 0).then_some((bits >> TICK_AT) as u16),
            postponed: low & POSTPONED != 0,
        }
    }

    fn bits(self) -> u64 {
        let mut low = self.dry | self.doublings << DOUBLINGS_AT | self.bad << BAD_AT;
        if self.postponed {
            low |= POSTPONED;
        }
        if self.more.is_some() {
            low |= MORE;
        }
        u64::from(low) | u64::from(self.more.unwrap_or(0)) << TICK_AT
    }

    /// It was postponed, and the event came in time.
    fn approve(&mut self) {
        self.bad = self.bad.saturating_sub(1);
        self.dry = (self.dry + 1).min(MOST);
        if self.dry == MOST && self.doublings > 0 {
            self.doublings -= 1;
            self.dry = DRY << self.doublings;
        }
    }

    /// It was postponed in vain. If that happens too often it has to show its habit for
    /// longer.
    fn object(&mut self, weight: u32) {
        self.bad += weight;
        if self.bad >= TOO_MUCH {
            self.dry = 0;
            self.bad = 0;
            self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Habit(AtomicU64);

impl Habit {
    fn known(&self) -> Known {
        Known::from_bits(self.0.load(Relaxed))
    }

    fn learn(&self, known: Known) {
        self.0.store(known.bits(), Relaxed);
    }

    /// Something was read by the event of that tick, and there may be more.
    #[inline]
    pub(super) fn read(&self, tick: u16) {
        let mut known = self.known();
        match (known.more == Some(tick), known.postponed) {
            // No event since the last read.
            (true, true) => known.object(WAITED),
            (true, false) => known.dry = 0,
            (false, true) => known.approve(),
            (false, false) => {}
        }
        known.more = Some(tick);
        known.postponed = false;
        self.learn(known);
    }

    /// A call by the event of that tick found nothing.
    #[inline]
    pub(super) fn found_nothing(&self, tick: u16) {
        let mut known = self.known();
        if known.more != Some(tick) {
            return;
        }
        known.more = None;
        if std::mem::take(&mut known.postponed) {
            known.object(LATE);
        } else {
            known.dry = (known.dry + 1).min(MOST);
        }
        self.learn(known);
    }

    /// Whether a call by the event of that tick should be postponed.
    #[inline]
    pub(super) fn postpones(&self, tick: u16) -> bool {
        let known = self.known();
        let trusted = known.dry >= DRY << known.doublings;
        trusted && known.more == Some(tick) && !known.postponed
    }

    /// It was.
    pub(super) fn postponed(&self) {
        self.learn(Known { postponed: true, ..self.known() });
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::{DRY, DRY_BITS, Habit, Known, LATE, MOST, MOST_DOUBLINGS, TOO_MUCH, WAITED};

    /// Reads that were each followed by a call that found nothing, until it is trusted.
    fn dry_until_trusted(habit: &Habit, tick: &mut u16) -> u32 {
        for count in 0.. {
            *tick += 1;
            habit.read(*tick);
            if habit.postpones(*tick) {
                habit.postponed();
                return count;
            }
            habit.found_nothing(*tick);
        }
        unreachable!("a u16 would overflow before");
    }

    #[test]
    fn a_socket_that_is_always_empty_is_trusted_and_stays_so() {
        let (habit, mut tick) = (Habit::default(), 0);
        assert_eq!(dry_until_trusted(&habit, &mut tick), DRY);
        for _ in 0..100 {
            // The event comes in time.
            assert_eq!(dry_until_trusted(&habit, &mut tick), 0);
        }
    }

    #[test]
    fn one_that_had_more_is_not_trusted_for_twice_as_long() {
        let (habit, mut tick) = (Habit::default(), 0);
        for doublings in 0..9 {
            let wanted = DRY << doublings.min(MOST_DOUBLINGS);
            assert_eq!(dry_until_trusted(&habit, &mut tick), wanted);
            for _ in 0..TOO_MUCH / WAITED {
                // By the same event: it was there all the time, as far as one can tell.
                habit.read(tick);
                habit.postponed();
            }
            habit.found_nothing(tick);
            assert!(!habit.postpones(tick));
        }
    }

    #[test]
    fn one_whose_next_event_is_far_off_is_given_up() {
        let (habit, mut tick) = (Habit::default(), 0);
        dry_until_trusted(&habit, &mut tick);
        for _ in 1..TOO_MUCH / LATE {
            assert!(!habit.postpones(tick), "once is enough");
            habit.found_nothing(tick);
            assert_eq!(dry_until_trusted(&habit, &mut tick), 0);
        }
        habit.found_nothing(tick);
        assert_eq!(dry_until_trusted(&habit, &mut tick), DRY << 1);
    }

    #[test]
    fn trust_comes_back_with_events_in_time() {
        let (habit, mut tick) = (Habit::default(), 0);
        habit.learn(Known { doublings: MOST_DOUBLINGS, ..Known::default() });
        dry_until_trusted(&habit, &mut tick);
        for _ in 0..MOST * MOST_DOUBLINGS {
            assert_eq!(dry_until_trusted(&habit, &mut tick), 0);
        }
        assert_eq!(habit.known().doublings, 0);
    }

    #[test]
    fn a_stream_that_never_runs_dry_is_never_trusted() {
        let habit = Habit::default();
        for _ in 0..1_000 {
            habit.read(7);
            assert!(!habit.postpones(7));
        }
    }

    proptest! {
        #[test]
        fn what_is_known_fits_into_its_word(
            dry in 0..=MOST,
            doublings in 0..=MOST_DOUBLINGS,
            bad in 0..TOO_MUCH,
            more: Option<u16>,
            postponed: bool,
        ) {
            prop_assert!(dry <= DRY_BITS);
            let known = Known { dry, doublings, bad, more, postponed };
            prop_assert_eq!(Known::from_bits(known.bits()), known);
        }
    }
}
