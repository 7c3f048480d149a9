//! Splits work into pieces, spreads them over the workers, and combines the results.
//!
//! Counts the primes below a million. Tasks are cheap, so there are many more of them than workers:
//! a worker that finishes early takes another one, so the duration of a piece need not be guessed.

#![forbid(unsafe_code)]

use std::ops::Range;

/// The number of pieces: enough to even out, few enough that each is real work.
const PIECES: u64 = 200;
const BELOW: u64 = 1_000_000;

fn main() {
    let primes = blitz_io::run(count_primes(BELOW));
    println!("{primes} primes below {BELOW}");
    assert_eq!(primes, 78_498);
}

async fn count_primes(below: u64) -> usize {
    let width = below.div_ceil(PIECES);
    let pieces: Vec<_> = (0..PIECES)
        .map(|i| i * width..((i + 1) * width).min(below))
        .map(|piece| blitz_io::spawn(async move { primes_in(piece) }))
        .collect();

    let mut sum = 0;
    for piece in pieces {
        sum += piece.await.expect("counting does not panic and is not aborted");
    }
    sum
}

fn primes_in(numbers: Range<u64>) -> usize {
    numbers.filter(|&number| is_prime(number)).count()
}

fn is_prime(number: u64) -> bool {
    number >= 2 && (2..).take_while(|d| d * d <= number).all(|d| !number.is_multiple_of(d))
}
