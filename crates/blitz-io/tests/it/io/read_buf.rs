//! Tests `ReadBuf`: its filled and initialised lengths, and what it refuses.

use std::mem::MaybeUninit;

use blitz_io::io::ReadBuf;
use bytes::BufMut;

use crate::support::caught_panic::panic_of;

/// Returns the filled length, the initialised length and the capacity of a buffer.
fn marks(buf: &ReadBuf<'_>) -> (usize, usize, usize) {
    (buf.filled().len(), buf.initialized().len(), buf.capacity())
}

#[test]
fn initialised_bytes_are_known_to_be() {
    let mut bytes = [1, 2, 3];
    let mut buf = ReadBuf::new(&mut bytes);
    assert_eq!(marks(&buf), (0, 3, 3));
    assert_eq!(buf.initialized(), [1, 2, 3]);
    assert_eq!(buf.initialize_unfilled(), [1, 2, 3]);
    buf.advance(2);
    assert_eq!((buf.filled(), buf.remaining()), (&[1, 2][..], 1));
    buf.filled_mut()[0] = 9;
    buf.clear();
    assert_eq!((marks(&buf), buf.initialized()), ((0, 3, 3), &[9, 2, 3][..]));
}

#[test]
fn bytes_are_zeroed_once_and_only_as_far_as_requested() {
    let mut memory = [MaybeUninit::new(7); 8];
    let mut buf = ReadBuf::uninit(&mut memory);
    assert_eq!(marks(&buf), (0, 0, 8));
    buf.initialize_unfilled_to(3)[1] = 5;
    assert_eq!(marks(&buf), (0, 3, 8));
    assert_eq!(buf.initialize_unfilled_to(4), [0, 5, 0, 0]);
    buf.advance(2);
    assert_eq!(buf.initialize_unfilled_to(1), [0]);
    assert_eq!(marks(&buf), (2, 4, 8));
    assert_eq!(buf.initialize_unfilled().len(), 6);
    assert_eq!(marks(&buf), (2, 8, 8));
    assert_eq!(buf.initialize_unfilled_to(0).len(), 0);
}

#[test]
fn put_bytes_are_filled_and_initialised() {
    let mut memory = [MaybeUninit::uninit(); 4];
    let mut buf = ReadBuf::uninit(&mut memory);
    buf.put_slice(b"");
    buf.put_slice(b"abc");
    assert_eq!((marks(&buf), buf.filled()), ((3, 3, 4), &b"abc"[..]));
    buf.set_filled(1);
    buf.put_slice(b"x");
    assert_eq!(marks(&buf), (2, 3, 4));
    assert_eq!(buf.initialized(), b"axc");
}

#[test]
fn a_part_knows_nothing_of_the_whole_and_is_not_counted() {
    let mut bytes = [0; 6];
    let mut buf = ReadBuf::new(&mut bytes);
    buf.put_slice(b"ab");
    let mut part = buf.take(3);
    assert_eq!(marks(&part), (0, 0, 3));
    part.put_slice(b"cd");
    assert_eq!(marks(&buf), (2, 6, 6));
    assert_eq!(buf.initialized(), b"abcd\0\0");
    assert_eq!(buf.take(usize::MAX).capacity(), 4);
    assert_eq!(buf.take(0).capacity(), 0);
}

#[test]
fn a_read_buf_is_a_buf_mut() {
    let mut memory = [MaybeUninit::uninit(); 6];
    let mut buf = ReadBuf::uninit(&mut memory);
    buf.put_u16(0x4142);
    BufMut::put_slice(&mut buf, b"CD");
    assert_eq!((buf.filled(), buf.remaining_mut()), (&b"ABCD"[..], 2));
    assert_eq!(buf.chunk_mut().len(), 2);
    assert_eq!(marks(&buf), (4, 4, 6));
}

#[test]
fn debug_of_a_read_buf_shows_its_marks() {
    let mut bytes = [0; 3];
    let mut buf = ReadBuf::new(&mut bytes);
    buf.advance(1);
    assert_eq!(format!("{buf:?}"), "ReadBuf { filled: 1, initialized: 3, capacity: 3 }");
}

/// Returns the message of a panic, whose location must be in this file.
#[track_caller]
fn refused(f: impl FnOnce()) -> String {
    let caught = panic_of(f);
    assert_eq!(caught.file, file!());
    caught.message
}

#[test]
fn too_many_bytes_panic_at_the_callers_line() {
    let mut memory = [MaybeUninit::uninit(); 4];
    let mut buf = ReadBuf::uninit(&mut memory);
    buf.put_slice(b"ab");
    let text = refused(|| buf.put_slice(b"cde"));
    let wanted = "buf.len() must fit in remaining(); buf.len() = 3, remaining() = 2";
    assert!(text.starts_with(wanted), "{text}");
    let text = refused(|| _ = buf.initialize_unfilled_to(3));
    assert!(text.starts_with("n overflows remaining"), "{text}");
    let text = refused(|| buf.advance(1));
    assert!(text.starts_with("filled must not become larger than initialized"), "{text}");
    let text = refused(|| buf.set_filled(3));
    assert!(text.starts_with("filled must not become larger than initialized"), "{text}");
    let text = refused(|| buf.advance(usize::MAX));
    assert!(text.starts_with("filled overflow"), "{text}");
    assert_eq!((marks(&buf), buf.filled()), ((2, 2, 4), &b"ab"[..]));
}

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
