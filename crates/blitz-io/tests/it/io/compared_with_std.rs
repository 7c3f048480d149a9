//! Feeds random bytes in random pieces, and compares the results with those of std for one piece.
//!
//! It must make no difference where the bytes are cut, where the source waits and where it is
//! interrupted; nor, for cancel safe operations, whether a future is dropped while it is pending.

use std::{
    io::{self, BufRead, Read},
    task::Poll,
};

use blitz_io::io::{AsyncBufReadExt, AsyncReadExt, ErrorKind};
use proptest::prelude::*;

use crate::support::{
    manual_poll::{finish_after, once},
    scripted_io::{Source, Step},
};

/// Generates bytes from a small set, so that delimiters, line ends and invalid text are frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"ab\r\n,\xc3\xa4\xff".to_vec());
    prop::collection::vec(byte, 0..80)
}

/// Generates the event before each piece, and the length of the piece.
fn cuts() -> impl Strategy<Value = Vec<(u8, usize)>> {
    prop::collection::vec((0..4_u8, 1..40_usize), 1..20)
}

fn in_pieces(bytes: &[u8], cuts: &[(u8, usize)]) -> Source {
    let mut rest: &'static [u8] = Vec::leak(bytes.to_vec());
    let mut steps = Vec::new();
    for (before, length) in cuts.iter().cycle() {
        match before {
            0 => steps.push(Step::Wait),
            1 => steps.push(Step::Fail(ErrorKind::Interrupted)),
            _ => {}
        }
        if rest.is_empty() {
            return Source::new(steps);
        }
        let (piece, later) = rest.split_at(rest.len().min(*length));
        steps.push(Step::Bytes(piece));
        rest = later;
    }
    unreachable!("there is at least one cut")
}

/// Polls new futures once each, until one completes.
macro_rules! by_one_poll_each {
    ($future:expr) => {
        loop {
            if let Poll::Ready(output) = once($future) {
                break output;
            }
        }
    };
}

fn outcome<T>(result: io::Result<T>) -> Result<T, ErrorKind> {
    result.map_err(|error| error.kind())
}

proptest! {
    #[test]
    fn lines_are_those_of_std(bytes in bytes(), cuts in cuts()) {
        let wanted: Vec<_> = BufRead::lines(&bytes[..]).map(outcome).collect();
        let mut lines = in_pieces(&bytes, &cuts).lines();
        let mut found = Vec::new();
        while let Some(line) = outcome(by_one_poll_each!(lines.next_line())).transpose() {
            found.push(line);
        }
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn segments_are_those_of_std(bytes in bytes(), cuts in cuts()) {
        let wanted: Vec<_> = BufRead::split(&bytes[..], b',').map(outcome).collect();
        let mut segments = in_pieces(&bytes, &cuts).split(b',');
        let mut found = Vec::new();
        while let Some(segment) = outcome(by_one_poll_each!(segments.next_segment())).transpose() {
            found.push(segment);
        }
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn read_until_returns_what_std_returns(bytes in bytes(), cuts in cuts()) {
        let (mut model, mut reader) = (&bytes[..], in_pieces(&bytes, &cuts));
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        while BufRead::read_until(&mut model, b',', &mut wanted).unwrap() > 0 {
            by_one_poll_each!(reader.read_until(b',', &mut found)).unwrap();
            prop_assert_eq!(&found, &wanted);
        }
    }

    #[test]
    fn a_line_is_what_std_reads(bytes in bytes(), cuts in cuts()) {
        let (mut model, mut reader) = (&bytes[..], in_pieces(&bytes, &cuts));
        let (mut wanted, mut found) = ("a".to_owned(), "a".to_owned());
        loop {
            let read = outcome(BufRead::read_line(&mut model, &mut wanted));
            prop_assert_eq!(outcome(finish_after(reader.read_line(&mut found)).0), read);
            prop_assert_eq!(&found, &wanted);
            if read == Ok(0) {
                break;
            }
        }
    }

    #[test]
    fn the_rest_is_what_std_reads(
        bytes in bytes(), cuts in cuts(), capacity in 0..100_usize, limit in 0..100_u64,
    ) {
        let mut found = Vec::with_capacity(capacity);
        let mut reader = in_pieces(&bytes, &cuts).take(limit);
        by_one_poll_each!(reader.read_to_end(&mut found)).unwrap();
        let mut wanted = Vec::new();
        let mut model = Read::take(&bytes[..], limit);
        model.read_to_end(&mut wanted).unwrap();
        prop_assert_eq!(&found, &wanted);
        prop_assert_eq!(reader.limit(), model.limit());

        let (mut wanted, mut found) = ("ü".to_owned(), "ü".to_owned());
        let read = outcome(Read::read_to_string(&mut &bytes[..], &mut wanted));
        let mut reader = in_pieces(&bytes, &cuts);
        prop_assert_eq!(outcome(finish_after(reader.read_to_string(&mut found)).0), read);
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn a_chain_is_its_parts_in_a_row(
        first in bytes(), second in bytes(), cuts in cuts(), at in 0..160_usize,
    ) {
        let mut both = in_pieces(&first, &cuts).chain(in_pieces(&second, &cuts));
        let joined = [&first[..], &second].concat();
        let mut head = vec![0; at.min(joined.len())];
        finish_after(both.read_exact(&mut head)).0.unwrap();
        let mut tail = Vec::new();
        while by_one_poll_each!(both.read_until(b'\n', &mut tail)).unwrap() > 0 {}
        prop_assert_eq!([head, tail].concat(), joined);
    }
}
