//! `ReadBuf`: filled, initialised and free bytes of one buffer.

use std::mem::MaybeUninit;

use blitz_io::io::ReadBuf;

use crate::caught::panic_of;

#[test]
fn a_new_one_is_initialised_and_empty() {
    let mut bytes = [7; 8];
    let mut buf = ReadBuf::new(&mut bytes);
    assert_eq!((buf.capacity(), buf.remaining()), (8, 8));
    assert_eq!(buf.filled(), b"");
    assert_eq!(buf.initialized(), [7; 8]);
    assert_eq!(buf.filled_mut(), b"");
}

#[test]
fn an_uninitialised_one_has_nothing_to_show() {
    let mut bytes = [MaybeUninit::<u8>::uninit(); 8];
    let mut buf = ReadBuf::uninit(&mut bytes);
    assert_eq!((buf.capacity(), buf.remaining()), (8, 8));
    assert_eq!(buf.initialized(), b"");
    assert_eq!(buf.initialize_unfilled(), [0; 8], "what is shown was written first");
    assert_eq!(buf.initialized().len(), 8);
    assert_eq!(buf.filled(), b"");
}

#[test]
fn put_slice_fills_in_order() {
    let mut bytes = [MaybeUninit::<u8>::uninit(); 8];
    let mut buf = ReadBuf::uninit(&mut bytes);
    buf.put_slice(b"abc");
    buf.put_slice(b"");
    buf.put_slice(b"de");
    assert_eq!(buf.filled(), b"abcde");
    assert_eq!((buf.remaining(), buf.initialized()), (3, &b"abcde"[..]));
    buf.filled_mut()[0] = b'A';
    assert_eq!(buf.filled(), b"Abcde");
}

#[test]
fn more_than_there_is_room_for_panics() {
    let mut bytes = [0; 4];
    let mut buf = ReadBuf::new(&mut bytes);
    buf.put_slice(b"abc");
    panic_of(|| buf.put_slice(b"de"));
    assert_eq!(buf.filled(), b"abc");
    panic_of(|| buf.initialize_unfilled_to(2));
}

#[test]
fn advance_and_set_filled_stay_within_what_is_initialised() {
    let mut bytes = [MaybeUninit::<u8>::uninit(); 8];
    let mut buf = ReadBuf::uninit(&mut bytes);
    panic_of(|| buf.advance(1));
    panic_of(|| buf.set_filled(1));
    buf.initialize_unfilled_to(4).copy_from_slice(b"wxyz");
    buf.advance(3);
    assert_eq!(buf.filled(), b"wxy");
    buf.set_filled(1);
    assert_eq!(buf.filled(), b"w");
    panic_of(|| buf.advance(usize::MAX));
    panic_of(|| buf.set_filled(5));
    buf.clear();
    assert_eq!((buf.filled(), buf.initialized()), (&b""[..], &b"wxyz"[..]));
}

#[test]
fn take_gives_a_shorter_buffer_over_the_free_part() {
    let mut bytes = [0; 8];
    let mut buf = ReadBuf::new(&mut bytes);
    buf.put_slice(b"ab");
    {
        let mut part = buf.take(3);
        assert_eq!((part.capacity(), part.remaining()), (3, 3));
        part.put_slice(b"cd");
    }
    assert_eq!(buf.filled(), b"ab", "what was put into the part is not counted");
    buf.advance(2);
    assert_eq!(buf.filled(), b"abcd");
    assert_eq!(buf.take(100).capacity(), 4);
}

#[test]
fn a_buffer_of_nothing_is_full() {
    let mut buf = ReadBuf::new(&mut []);
    assert_eq!((buf.capacity(), buf.remaining()), (0, 0));
    buf.put_slice(b"");
    assert_eq!(buf.initialize_unfilled(), b"");
    panic_of(|| buf.put_slice(b"a"));
}

#[test]
fn debug_output_shows_the_bytes() {
    let mut bytes = [0; 3];
    let text = format!("{:?}", ReadBuf::new(&mut bytes));
    assert!(text.contains("ReadBuf") && text.contains("filled"), "{text}");
}
