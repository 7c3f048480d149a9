//! Tests that numbers are read and written in both byte orders.

use std::fmt::Debug;

use blitz_io::io::{AsyncReadExt, AsyncWriteExt, ErrorKind, empty};

use crate::support::{
    manual_io::kind,
    manual_poll::{finish_after, give_up, now},
    scripted_io::{
        Sink, Source,
        Step::{self, Bytes, Fail, Wait},
    },
};

/// Tests each pair of methods in a round trip, in one piece and byte by byte.
macro_rules! there_and_back {
    ($($test:ident: $write:ident $read:ident $to_bytes:ident $($value:expr),+;)*) => {$(
        #[test]
        fn $test() {
            $({
                let (value, bytes) = ($value, $value.$to_bytes());
                let mut whole = Vec::new();
                now(whole.$write(value)).unwrap();
                assert_eq!(whole, bytes);
                assert_same(now(whole.as_slice().$read()).unwrap(), value);

                let mut slow = Sink::new((0..bytes.len()).flat_map(|_| [Step::Wait, Step::Most(1)]));
                let (written, waits) = finish_after(slow.$write(value));
                written.unwrap();
                assert_eq!((&slow.taken[..], waits), (&bytes[..], bytes.len()));
                let bytes: &'static [u8] = Vec::leak(bytes.to_vec());
                let mut slow = Source::new(bytes.chunks(1).flat_map(|byte| [Wait, Bytes(byte)]));
                let (read, waits) = finish_after(slow.$read());
                assert_same(read.unwrap(), value);
                assert_eq!(waits, bytes.len());
            })+
        }
    )*};
}

/// Asserts equality, also of the bits where `==` is less strict.
fn assert_same<T: PartialEq + Debug>(found: T, wanted: T) {
    assert_eq!(found, wanted);
    assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
}

there_and_back! {
    u8_is_a_byte: write_u8 read_u8 to_be_bytes 0_u8, 7_u8, u8::MAX;
    i8_is_a_byte: write_i8 read_i8 to_be_bytes 0_i8, -7_i8, i8::MIN;
    u16_has_the_high_byte_first: write_u16 read_u16 to_be_bytes 0x0102_u16, u16::MAX;
    i16_has_the_high_byte_first: write_i16 read_i16 to_be_bytes 0x0102_i16, i16::MIN;
    u32_has_the_high_byte_first: write_u32 read_u32 to_be_bytes 0x0102_0304_u32;
    i32_has_the_high_byte_first: write_i32 read_i32 to_be_bytes 0x0102_0304_i32, -2_i32;
    u64_has_the_high_byte_first: write_u64 read_u64 to_be_bytes 0x0102_0304_0506_0708_u64;
    i64_has_the_high_byte_first: write_i64 read_i64 to_be_bytes -2_i64, i64::MIN;
    u128_has_the_high_byte_first: write_u128 read_u128 to_be_bytes u128::MAX - 255;
    i128_has_the_high_byte_first: write_i128 read_i128 to_be_bytes i128::MIN + 255;
    f32_has_the_high_byte_first: write_f32 read_f32 to_be_bytes 1.5_f32, -0.0_f32, f32::MIN_POSITIVE;
    f64_has_the_high_byte_first: write_f64 read_f64 to_be_bytes 1.5_f64, -0.0_f64, f64::INFINITY;
    u16_le_has_the_low_byte_first: write_u16_le read_u16_le to_le_bytes 0x0102_u16;
    i16_le_has_the_low_byte_first: write_i16_le read_i16_le to_le_bytes 0x0102_i16, -2_i16;
    u32_le_has_the_low_byte_first: write_u32_le read_u32_le to_le_bytes 0x0102_0304_u32;
    i32_le_has_the_low_byte_first: write_i32_le read_i32_le to_le_bytes 0x0102_0304_i32, -2_i32;
    u64_le_has_the_low_byte_first: write_u64_le read_u64_le to_le_bytes 0x0102_0304_0506_0708_u64;
    i64_le_has_the_low_byte_first: write_i64_le read_i64_le to_le_bytes -2_i64, i64::MIN;
    u128_le_has_the_low_byte_first: write_u128_le read_u128_le to_le_bytes u128::MAX - 255;
    i128_le_has_the_low_byte_first: write_i128_le read_i128_le to_le_bytes i128::MIN + 255;
    f32_le_has_the_low_byte_first: write_f32_le read_f32_le to_le_bytes 1.5_f32, -0.0_f32;
    f64_le_has_the_low_byte_first: write_f64_le read_f64_le to_le_bytes 1.5_f64, -0.0_f64;
}

#[test]
fn a_number_keeps_its_bits_even_if_it_is_none() {
    let mut bytes = Vec::new();
    now(bytes.write_f64(f64::from_bits(0x7ff8_0000_0000_0123))).unwrap();
    assert_eq!(now(bytes.as_slice().read_f64()).unwrap().to_bits(), 0x7ff8_0000_0000_0123);
}

#[test]
fn the_end_in_the_middle_of_a_number_is_an_error() {
    assert_eq!(kind(now(b"".as_slice().read_u8())), ErrorKind::UnexpectedEof);
    assert_eq!(kind(now(b"abc".as_slice().read_u32())), ErrorKind::UnexpectedEof);
    assert_eq!(kind(now(b"abc".as_slice().read_f32_le())), ErrorKind::UnexpectedEof);
    let mut reader = Source::new([Bytes(b"abcdefg"), Wait]);
    let (read, waits) = finish_after(reader.read_i64());
    assert_eq!((kind(read), waits), (ErrorKind::UnexpectedEof, 1));
}

#[test]
fn a_sink_that_takes_nothing_is_an_error() {
    assert_eq!(kind(now(Sink::new([Step::Most(0)]).write_u8(1))), ErrorKind::WriteZero);
    let mut writer = Sink::new([Step::Most(3), Step::Most(0)]);
    assert_eq!(kind(now(writer.write_u32(1))), ErrorKind::WriteZero);
    assert_eq!(writer.taken, [0, 0, 0]);
}

#[test]
fn a_number_that_is_interrupted_goes_on() {
    let again = || Fail(ErrorKind::Interrupted);
    let mut reader =
        Source::new([again(), Bytes(&[1]), again(), Bytes(&[2]), again(), Bytes(&[3])]);
    assert_eq!(now(reader.read_u16()).unwrap(), 0x0102);
    assert_eq!(now(reader.read_u8()).unwrap(), 3);
    let again = || Step::Fail(ErrorKind::Interrupted);
    let mut writer = Sink::new([again(), Step::Most(1), again(), again(), Step::Most(1), again()]);
    now(writer.write_u16(0x0102)).unwrap();
    now(writer.write_i8(3)).unwrap();
    assert_eq!(writer.taken, [1, 2, 3]);
}

#[test]
fn other_errors_are_passed_on() {
    let mut reader = Source::new([Bytes(&[1]), Fail(ErrorKind::ConnectionReset)]);
    assert_eq!(kind(now(reader.read_u16_le())), ErrorKind::ConnectionReset);
    let mut writer = Sink::new([Step::Most(1), Step::Fail(ErrorKind::BrokenPipe)]);
    assert_eq!(kind(now(writer.write_u16_le(1))), ErrorKind::BrokenPipe);
}

#[test]
fn a_byte_is_not_lost_when_its_future_is_dropped() {
    let mut reader = Source::new([Wait, Bytes(&[9])]);
    give_up(reader.read_u8());
    assert_eq!(now(reader.read_u8()).unwrap(), 9);
}

/// Reads each integer in both byte orders, complete and truncated.
macro_rules! integers {
    ($($read:ident $read_le:ident $kind:ty),* $(,)?) => {$(
        let size = size_of::<$kind>();
        let bytes: Vec<u8> = (0x81..).take(size).collect();
        let found = now((&bytes[..]).$read()).unwrap();
        assert_eq!(found.to_be_bytes(), bytes[..], stringify!($read));
        let found = now((&bytes[..]).$read_le()).unwrap();
        assert_eq!(found.to_le_bytes(), bytes[..], stringify!($read_le));
        for short in 0..size {
            let error = now((&bytes[..short]).$read()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, stringify!($read));
            let error = now((&bytes[..short]).$read_le()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, stringify!($read_le));
        }
    )*};
}

#[test]
fn numbers_are_read_in_both_orders_and_never_by_half() {
    integers!(
        read_u16 read_u16_le u16, read_u32 read_u32_le u32, read_u64 read_u64_le u64,
        read_u128 read_u128_le u128, read_i16 read_i16_le i16, read_i32 read_i32_le i32,
        read_i64 read_i64_le i64, read_i128 read_i128_le i128, read_f32 read_f32_le f32,
        read_f64 read_f64_le f64,
    );
    assert_eq!(now((&[200_u8][..]).read_u8()).unwrap(), 200);
    assert_eq!(now((&[200_u8][..]).read_i8()).unwrap(), -56);
    assert_eq!(now(empty().read_u8()).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(now(Source::byte_by_byte(b"\0\0\x01\x02").read_u32()).unwrap(), 0x102);
}

macro_rules! numbers {
    ($($write:ident $write_le:ident $kind:ty),* $(,)?) => {$(
        let bytes: Vec<u8> = (0x81..).take(size_of::<$kind>()).collect();
        let bytes: [u8; size_of::<$kind>()] = bytes.try_into().unwrap();
        let mut slow = Sink::limited(3, 100);
        now(slow.$write(<$kind>::from_be_bytes(bytes))).unwrap();
        now(slow.$write_le(<$kind>::from_le_bytes(bytes))).unwrap();
        assert_eq!(slow.taken, [bytes, bytes].concat(), stringify!($write));
    )*};
}

#[test]
fn numbers_are_written_in_both_orders_even_bit_by_bit() {
    numbers!(
        write_u16 write_u16_le u16, write_u32 write_u32_le u32, write_u64 write_u64_le u64,
        write_u128 write_u128_le u128, write_i16 write_i16_le i16, write_i32 write_i32_le i32,
        write_i64 write_i64_le i64, write_i128 write_i128_le i128, write_f32 write_f32_le f32,
        write_f64 write_f64_le f64,
    );
    let mut all: Vec<u8> = Vec::new();
    now(all.write_u8(1)).unwrap();
    now(all.write_i8(-1)).unwrap();
    assert_eq!(all, [1, 255]);
}
