//! The table of operations under way, by the numbers that the kernel knows them by.
//!
//! A number is a place in the table and a count of how often that place was given back before. The
//! kernel returns it with the completion. A cancel names one too, and may come after the
//! completion: then the number matches no operation, whichever one has the place now.
//!
//! # Checked by
//! `a_place_is_given_out_under_another_number`, `all_that_fly_are_listed`; the ring's models.
//! Weakened as `flights_number_anew`.

use crate::engine::prim::weakened;

/// The number of an operation under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Number(u64);

impl Number {
    /// The number of the ring's own requests; their completions are ignored.
    pub(crate) const NOBODY: Self = Self(u64::MAX);

    fn new(place: u32, round: u32) -> Self {
        Self(u64::from(round) << 32 | u64::from(place))
    }

    /// Returns the number as the kernel stores it.
    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Restores a number that the kernel returned.
    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    fn place(self) -> usize {
        self.0 as u32 as usize
    }

    fn round(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A slab of operations with generation-checked numbers.
pub(crate) struct Flights<T> {
    places: Vec<Place<T>>,
    /// The first free place; the free places form a linked list.
    free: u32,
    count: usize,
}

struct Place<T> {
    /// How often the place was given back.
    round: u32,
    held: Held<T>,
}

enum Held<T> {
    Flight(T),
    /// A free place, with the index of the next free one.
    Free(u32),
}

/// The end of the free list. No place has this index, so `Number::NOBODY` matches none.
const LAST: u32 = u32::MAX;

impl<T> Flights<T> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: LAST, count: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds an operation and returns its number.
    ///
    /// # Panics
    /// Panics if about four thousand million operations are under way.
    pub(crate) fn insert(&mut self, flight: T) -> Number {
        self.count += 1;
        if self.free == LAST {
            let place = u32::try_from(self.places.len()).ok().filter(|place| *place != LAST);
            let place = place.expect("the kernel has memory for fewer");
            self.places.push(Place { round: 0, held: Held::Flight(flight) });
            return Number::new(place, 0);
        }
        let at = self.free;
        let place = &mut self.places[at as usize];
        if let Held::Free(next) = std::mem::replace(&mut place.held, Held::Flight(flight)) {
            self.free = next;
        }
        Number::new(at, place.round)
    }

    /// Removes the operation with that number; returns `None` if it was removed before.
    pub(crate) fn remove(&mut self, number: Number) -> Option<T> {
        let place = self.places.get_mut(number.place())?;
        if place.round != number.round() || matches!(place.held, Held::Free(_)) {
            return None;
        }
        let Held::Flight(flight) = std::mem::replace(&mut place.held, Held::Free(self.free)) else {
            return None;
        };
        if !weakened!("flights_number_anew") {
            place.round = place.round.wrapping_add(1);
        }
        self.free = number.place() as u32;
        self.count -= 1;
        Some(flight)
    }

    /// Returns the numbers of all operations.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        self.each().map(|(number, _)| number).collect()
    }

    /// Returns an iterator over all operations with their numbers.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Number, &T)> {
        self.places.iter().enumerate().filter_map(|(at, place)| match &place.held {
            Held::Flight(flight) => Some((Number::new(at as u32, place.round), flight)),
            Held::Free(_) => None,
        })
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{Flights, Number};

    #[test]
    fn a_place_is_given_out_under_another_number() {
        let mut flights = Flights::new();
        let first = flights.insert('a');
        assert_eq!((flights.remove(first), flights.remove(first)), (Some('a'), None));
        let second = flights.insert('b');
        assert_eq!(first.place(), second.place(), "the place is used again");
        assert_eq!(flights.remove(first), None, "the first has ended");
        assert_eq!(flights.remove(Number::NOBODY), None);
        assert_eq!((flights.remove(second), flights.len()), (Some('b'), 0));
    }

    #[test]
    fn all_that_fly_are_listed() {
        let mut flights = Flights::new();
        let numbers: Vec<Number> = (0..10).map(|number| flights.insert(number)).collect();
        for number in &numbers[3..7] {
            flights.remove(*number);
        }
        let again: Vec<Number> = (0..2).map(|number| flights.insert(number)).collect();
        let mut listed = flights.numbers();
        listed.sort_by_key(|number| number.bits());
        let mut wanted: Vec<Number> =
            numbers[..3].iter().chain(&numbers[7..]).chain(&again).copied().collect();
        wanted.sort_by_key(|number| number.bits());
        assert_eq!((listed, flights.len()), (wanted, 8));
    }
}
