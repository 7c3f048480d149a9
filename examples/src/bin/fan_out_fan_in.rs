//! Cuts a piece of work, spreads it over the workers, puts the answers together.
//!
//! Counts the primes below a million. Tasks are cheap, so there are many more
//! of them than workers: a worker that is done early takes another one, and
//! nobody has to guess how long a piece takes.

#![forbid(unsafe_code)]

use std::ops::Range;

/// The pieces: enough to even out, few enough that each is real work.
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
        sum += piece.await.expect("counting does not panic and nobody aborts it");
    }
    sum
}

fn primes_in(numbers: Range<u64>) -> usize {
    numbers.filter(|&number| is_prime(number)).count()
}

fn is_prime(number: u64) -> bool {
    number >= 2 && (2..).take_while(|d| d * d <= number).all(|d| !number.is_multiple_of(d))
}
