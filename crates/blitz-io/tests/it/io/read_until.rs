//! Tests `read_until`, `read_line`, `lines`, `split`, `fill_buf` and `consume`.

use blitz_io::io::{AsyncBufReadExt, AsyncReadExt, BufReader, ErrorKind, duplex};

use crate::support::{
    manual_io::kind,
    manual_poll::{by_hand, finish_after, give_up, now},
    scripted_io::{
        Source,
        Step::{Bytes, Fail, Wait},
    },
};

#[test]
fn read_until_takes_the_delimiter_and_no_more() {
    let mut reader = Source::new([Bytes(b"a"), Wait, Bytes(b"b:c"), Bytes(b":"), Bytes(b":d")]);
    let mut buf = b"x".to_vec();
    let (read, waits) = finish_after(reader.read_until(b':', &mut buf));
    assert_eq!((read.unwrap(), waits, &buf[..]), (3, 1, &b"xab:"[..]));
    for wanted in [2, 1, 1, 0] {
        assert_eq!(now(reader.read_until(b':', &mut buf)).unwrap(), wanted);
    }
    assert_eq!(buf, b"xab:c::d");
}

#[test]
fn a_delimiter_that_was_there_before_does_not_count() {
    let mut buf = b"old:".to_vec();
    assert_eq!(now(b"new".as_slice().read_until(b':', &mut buf)).unwrap(), 3);
    assert_eq!(now(b"".as_slice().read_until(b':', &mut buf)).unwrap(), 0);
    assert_eq!(buf, b"old:new");
}

#[test]
fn read_until_goes_on_after_an_interruption_and_keeps_what_it_has_at_an_error() {
    let steps = [Bytes(b"a"), Fail(ErrorKind::Interrupted), Bytes(b"b"), Fail(ErrorKind::Other)];
    let mut reader = Source::new(steps.into_iter().chain([Bytes(b"c:")]));
    let mut buf = Vec::new();
    assert_eq!(kind(now(reader.read_until(b':', &mut buf))), ErrorKind::Other);
    assert_eq!(buf, b"ab");
    assert_eq!(now(reader.read_until(b':', &mut buf)).unwrap(), 2);
    assert_eq!(buf, b"abc:");
}

#[test]
fn read_until_loses_nothing_when_it_is_dropped() {
    let mut reader = Source::new([Bytes(b"ab"), Wait, Bytes(b"c:d")]);
    let mut buf = Vec::new();
    give_up(reader.read_until(b':', &mut buf));
    now(reader.read_until(b':', &mut buf)).unwrap();
    assert_eq!(buf, b"abc:");
}

#[test]
fn read_line_appends_a_line_with_its_end() {
    let mut reader =
        Source::new([Bytes("zw\u{f6}".as_bytes()), Wait, Bytes(b"lf\r\nx"), Bytes(b"\n\ny")]);
    let mut text = "> ".to_owned();
    let (read, waits) = finish_after(reader.read_line(&mut text));
    assert_eq!((read.unwrap(), waits, &text[..]), (8, 1, "> zwölf\r\n"));
    for (wanted, line) in [(2, "x\n"), (1, "\n"), (1, "y"), (0, "")] {
        text.clear();
        assert_eq!((now(reader.read_line(&mut text)).unwrap(), &text[..]), (wanted, line));
    }
}

#[test]
fn a_line_that_is_not_text_leaves_the_string_as_it_was() {
    let mut reader = Source::new([Bytes(b"ab\xffc\nnext\n")]);
    let mut text = "before".to_owned();
    let error = now(reader.read_line(&mut text)).unwrap_err();
    assert_eq!((error.kind(), &text[..]), (ErrorKind::InvalidData, "before"));
    assert_eq!(now(reader.read_line(&mut text)).unwrap(), 5);
    assert_eq!(text, "beforenext\n");
}

#[test]
fn text_before_an_error_is_kept() {
    for (came, kept) in [(&b"ab"[..], "before ab"), (b"ab\xff", "before ")] {
        let mut text = "before ".to_owned();
        let mut reader = Source::new([Bytes(came), Fail(ErrorKind::ConnectionReset)]);
        assert_eq!(kind(now(reader.read_line(&mut text))), ErrorKind::ConnectionReset);
        assert_eq!(text, kept);
    }
}

/// Returns all lines, or errors, up to the end.
fn lines_of(reader: Source) -> Vec<Result<String, ErrorKind>> {
    let mut lines = reader.lines();
    let mut found = Vec::new();
    loop {
        match finish_after(lines.next_line()).0 {
            Ok(None) => return found,
            Ok(Some(line)) => found.push(Ok(line)),
            Err(error) => found.push(Err(error.kind())),
        }
    }
}

#[test]
fn lines_come_without_their_ends() {
    let found = lines_of(Source::new([Bytes(b"a\r\nb\n\n\r\nc\rd\ne\r")]));
    let wanted = ["a", "b", "", "", "c\rd", "e\r"];
    assert_eq!(found, wanted.map(|line| Ok(line.to_owned())));
    assert_eq!(lines_of(Source::new([Bytes(b"a\n")])), [Ok("a".to_owned())]);
    assert_eq!(lines_of(Source::new([])), []);
}

#[test]
fn a_line_in_pieces_is_one_line() {
    let steps = [Bytes(b"a"), Wait, Bytes(b"b\r"), Fail(ErrorKind::Interrupted), Bytes(b"\nc")];
    assert_eq!(lines_of(Source::new(steps)), [Ok("ab".to_owned()), Ok("c".to_owned())]);
}

#[test]
fn a_bad_line_is_gone_and_the_next_one_comes() {
    let found = lines_of(Source::new([Bytes(b"a\n\xff\nb")]));
    assert_eq!(found, [Ok("a".to_owned()), Err(ErrorKind::InvalidData), Ok("b".to_owned())]);
}

#[test]
fn an_error_does_not_tear_a_line() {
    let found = lines_of(Source::new([Bytes(b"a"), Fail(ErrorKind::Other), Bytes(b"b\n")]));
    assert_eq!(found, [Err(ErrorKind::Other), Ok("ab".to_owned())]);
}

#[test]
fn next_line_and_next_segment_lose_nothing_when_they_are_dropped() {
    let steps = || Source::new([Bytes(b"a"), Wait, Bytes(b"b\nc")]);
    let mut lines = steps().lines();
    give_up(lines.next_line());
    assert_eq!(now(lines.next_line()).unwrap().as_deref(), Some("ab"));
    let mut segments = steps().split(b'\n');
    give_up(segments.next_segment());
    assert_eq!(now(segments.next_segment()).unwrap().as_deref(), Some(&b"ab"[..]));
}

#[test]
fn the_source_of_lines_can_be_had_back() {
    let mut lines = b"a\nb\nc".as_slice().lines();
    now(lines.next_line()).unwrap();
    assert_eq!(*lines.get_ref(), b"b\nc");
    lines.get_mut().consume(2);
    assert_eq!(lines.into_inner(), b"c");
}

#[test]
fn segments_come_without_their_delimiters() {
    let mut segments = Source::new([Bytes(b",a,"), Wait, Bytes(b",\r\nb")]).split(b',');
    let mut found = Vec::new();
    while let Some(segment) = finish_after(segments.next_segment()).0.unwrap() {
        found.push(segment);
    }
    assert_eq!(found, [&b""[..], b"a", b"", b"\r\nb"]);
    assert_eq!(now(segments.next_segment()).unwrap(), None);
}

#[test]
fn fill_buf_shows_and_consume_takes() {
    let mut reader = Source::new([Wait, Bytes(b"abc"), Fail(ErrorKind::Interrupted)]);
    assert_eq!(finish_after(reader.fill_buf()).0.unwrap(), b"abc");
    assert_eq!(now(reader.fill_buf()).unwrap(), b"abc");
    reader.consume(0);
    reader.consume(2);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"c");
    reader.consume(1);
    assert_eq!(kind(now(reader.fill_buf())), ErrorKind::Interrupted);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"");
}

#[test]
fn fill_buf_polls_the_source_once() {
    // A source that reports its end and then has more: the rest must be left for the next call.
    let mut reader = Source::new([Bytes(b""), Bytes(b"more")]);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"");
    reader.consume(0);
    assert_eq!(now(reader.read_u8()).unwrap(), b'm');
}

#[test]
#[should_panic(expected = "after completion")]
fn fill_buf_that_has_completed_is_not_polled_again() {
    let mut reader = b"a".as_slice();
    let mut future = std::pin::pin!(reader.fill_buf());
    assert!(crate::support::manual_poll::poll_once(&mut future).is_ready());
    let _ = crate::support::manual_poll::poll_once(&mut future);
}

#[test]
fn a_limit_ends_a_line() {
    let mut line = String::new();
    let mut limited = b"a line that is too long\n".as_slice().take(6);
    assert_eq!(now(limited.read_line(&mut line)).unwrap(), 6);
    assert_eq!((&line[..], limited.limit()), ("a line", 0));
}

#[test]
fn read_until_keeps_the_byte_and_ends_at_the_end() {
    let mut source = BufReader::with_capacity(2, &b"ab-cd--e"[..]);
    let mut found = Vec::new();
    for (size, all) in [(3, "ab-"), (3, "ab-cd-"), (1, "ab-cd--"), (1, "ab-cd--e"), (0, "ab-cd--e")]
    {
        assert_eq!(now(source.read_until(b'-', &mut found)).unwrap(), size);
        assert_eq!(found, all.as_bytes());
    }
}

#[test]
fn read_line_appends_and_restores_the_string_when_it_is_not_utf_8() {
    let mut source = BufReader::with_capacity(3, Source::byte_by_byte(b"one\r\ntwo\n\xff\nthree"));
    let mut line = String::new();
    assert_eq!(now(source.read_line(&mut line)).unwrap(), 5);
    assert_eq!(line, "one\r\n");
    assert_eq!(now(source.read_line(&mut line)).unwrap(), 4);
    assert_eq!(line, "one\r\ntwo\n");
    let error = now(source.read_line(&mut line)).unwrap_err();
    assert_eq!((error.kind(), line.as_str()), (ErrorKind::InvalidData, "one\r\ntwo\n"));
    line.clear();
    assert_eq!(now(source.read_line(&mut line)).unwrap(), 5);
    assert_eq!(line, "three");
    assert_eq!(now(source.read_line(&mut line)).unwrap(), 0);
}

#[test]
fn lines_are_without_their_ends() {
    let mut lines = BufReader::new(&b"one\r\ntwo\n\nthree"[..]).lines();
    let mut found = Vec::new();
    while let Some(line) = now(lines.next_line()).unwrap() {
        found.push(line);
    }
    assert_eq!(found, ["one", "two", "", "three"]);
    assert_eq!(now(lines.next_line()).unwrap(), None);
}

#[test]
fn next_line_that_is_dropped_loses_nothing() {
    let (mut writer, reader) = duplex(64);
    let mut lines = BufReader::new(reader).lines();
    use blitz_io::io::AsyncWriteExt;
    for part in ["he", "ll", "o"] {
        now(writer.write_all(part.as_bytes())).unwrap();
        assert!(by_hand(lines.next_line()).poll().is_pending());
    }
    now(writer.write_all(b"\n")).unwrap();
    assert_eq!(now(lines.next_line()).unwrap().as_deref(), Some("hello"));
}

#[test]
fn split_cuts_at_every_byte_of_its_kind() {
    let mut split = AsyncBufReadExt::split(&b"a,b,,c"[..], b',');
    let mut found = Vec::new();
    while let Some(part) = now(split.next_segment()).unwrap() {
        found.push(part);
    }
    assert_eq!(found, [&b"a"[..], b"b", b"", b"c"]);
    // A separator at the end starts no new segment.
    let mut split = AsyncBufReadExt::split(&b"a,"[..], b',');
    assert_eq!(now(split.next_segment()).unwrap().unwrap(), b"a");
    assert_eq!(now(split.next_segment()).unwrap(), None);
}

#[test]
fn a_buffer_is_shown_until_it_is_consumed() {
    let mut source = BufReader::with_capacity(4, &b"abcdef"[..]);
    assert_eq!(now(source.fill_buf()).unwrap(), b"abcd");
    source.consume(1);
    assert_eq!(now(source.fill_buf()).unwrap(), b"bcd");
    source.consume(3);
    assert_eq!(now(source.fill_buf()).unwrap(), b"ef");
    source.consume(2);
    assert_eq!(now(source.fill_buf()).unwrap(), b"");
}
