//! Every example as a user runs it: by itself, and the servers with an address.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::{BufRead, BufReader, Cursor, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

/// Runs a program without arguments, to its end.
#[track_caller]
fn ends_well(program: &str) {
    let output = Command::new(program).output().expect("it was built beside this test");
    assert!(output.status.success(), "{output:?}");
}

macro_rules! each_ends_well {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            ends_well(env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
        })+
    };
}

mod a_run_without_arguments_ends_well {
    use super::ends_well;

    each_ends_well! {
        abort_and_shield chat echo fan_out_fan_in fiber_lines graceful hello_tasks hog http
        panic_abort pipeline proxy quicksort render_server structure word_count
    }
}

/// Runs a program with arguments and returns its output.
#[track_caller]
fn output(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().expect("it was built beside this test")
}

/// Runs a program with arguments that must be refused, and returns its message.
#[track_caller]
fn complaint(program: &str, arguments: &[&str]) -> String {
    let output = output(program, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?} is refused: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn quicksort_sorts_the_given_number_of_values() {
    // None, one, one more than is sorted without a join, and some levels of joins.
    for count in ["0", "1", "4097", "50000"] {
        let output = output(env!("CARGO_BIN_EXE_quicksort"), &[count]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.starts_with(&format!("{count} numbers")), "{said}");
        assert_eq!(said.matches(" ms").count(), 10, "two times for each input: {said}");
    }
}

#[test]
fn quicksort_refuses_what_is_no_number_of_elements() {
    for wrong in ["-1", "many", "1e6", "99999999999999999999"] {
        let said = complaint(env!("CARGO_BIN_EXE_quicksort"), &[wrong]);
        assert!(said.contains(&format!("`{wrong}`")) && said.contains("give one"), "{said}");
    }
}

/// A directory of a test's own, which is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("blitz-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the directory for temporary files can be written to");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns width, height and pixels of a PNG.
#[track_caller]
fn decoded(file: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(Cursor::new(file)).read_info().expect("it is a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("it fits into memory")];
    let frame = reader.next_frame(&mut pixels).expect("its rows are whole");
    assert_eq!(frame.color_type, png::ColorType::Rgb);
    (frame.width, frame.height, pixels)
}

/// Returns the colours of a picture.
fn colours(pixels: &[u8]) -> HashSet<&[u8]> {
    pixels.chunks_exact(3).collect()
}

#[test]
fn mandelbrot_writes_a_picture_of_the_requested_size() {
    let folder = Folder::new("mandelbrot");
    let file = folder.file("small.png");
    let said = output(
        env!("CARGO_BIN_EXE_mandelbrot"),
        &["96x65", file.to_str().expect("we have named it ourselves")],
    );
    assert!(said.status.success(), "{said:?}");
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(said.contains(&format!("wrote {}", file.display())), "{said}");

    let (width, height, pixels) = decoded(&fs::read(&file).expect("it was written"));
    assert_eq!((width, height), (96, 65));
    assert!(colours(&pixels).len() > 10, "{} colours", colours(&pixels).len());
    // The row in the middle goes through the set; the corner is far from it.
    let middle = &pixels[32 * 96 * 3..33 * 96 * 3];
    assert!(colours(middle).contains(&[0, 0, 0][..]), "nothing of the set was drawn");
    assert_ne!(pixels[..3], [0, 0, 0]);
}

#[test]
fn mandelbrot_without_arguments_writes_to_the_temporary_directory() {
    let folder = Folder::new("mandelbrot-default");
    let said = Command::new(env!("CARGO_BIN_EXE_mandelbrot"))
        .envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, &folder.0)))
        .output()
        .expect("it was built beside this test");
    assert!(said.status.success(), "{said:?}");
    let file = fs::read(folder.file("blitz-mandelbrot.png")).expect("it was written there");
    let (width, height, pixels) = decoded(&file);
    assert_eq!((width, height), (640, 480));
    assert!(colours(&pixels).len() > 10);
}

#[test]
fn mandelbrot_refuses_what_it_cannot_draw_or_write() {
    let program = env!("CARGO_BIN_EXE_mandelbrot");
    assert!(complaint(program, &["0x10"]).contains("as in 640x480"));
    assert!(complaint(program, &["4000000000x4000000000"]).contains("too large"));
    assert!(complaint(program, &["1x1", "a.png", "b.png"]).contains("`b.png`"));
    let folder = Folder::new("mandelbrot-refused");
    let nowhere = folder.file("missing").join("a.png");
    let said = complaint(program, &["1x1", nowhere.to_str().expect("we have named it")]);
    assert!(said.contains("give another file"), "{said}");
}

#[test]
fn rayon_runs_on_our_core() {
    // At compile time: the published core has no such constant.
    assert_eq!(rayon_core::BLITZ_IO_DROPIN, "1.13.0");
    // And at run time: a thread of Rayon's is one of our pool's.
    let index = rayon::scope(|_| blitz_io::parallel::current_thread_index());
    assert!(index.is_some(), "rayon started threads of its own");
}

/// Counts the words of texts sequentially.
fn counted(texts: &[&str]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for word in texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric())) {
        if !word.is_empty() {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn word_count_counts_the_files_of_directories_and_those_that_are_named() {
    let folder = Folder::new("words");
    fs::create_dir_all(folder.file("deep/deeper")).expect("it is ours");
    let long = "Fork, join; fork again.\nÄpfel äpfel\n".repeat(3_000);
    let texts =
        [("deep/a.txt", "one Two two\n"), ("deep/deeper/b.txt", &long), ("c.txt", "two\r\n")];
    for (name, text) in texts {
        fs::write(folder.file(name), text).expect("it is ours");
    }
    fs::write(folder.file("deep/empty"), "").expect("it is ours");

    let paths = [folder.file("deep"), folder.file("c.txt")];
    let said = Command::new(env!("CARGO_BIN_EXE_word_count")).args(&paths).output();
    let said = said.expect("it was built beside this test");
    assert!(said.status.success(), "{said:?}");
    let said = String::from_utf8_lossy(&said.stdout);

    let expected = counted(&texts.map(|(_, text)| text));
    let words: u64 = expected.values().sum();
    let sums = format!("{words} words in 4 files, {} of them different\n", expected.len());
    assert!(said.contains(&sums), "{sums}{said}");
    for (word, count) in expected {
        let line = format!("{count:>9} {word}");
        assert!(said.lines().any(|it| it == line), "no line `{line}`: {said}");
    }
}

#[test]
fn word_count_reports_what_it_cannot_read_and_counts_the_rest() {
    let folder = Folder::new("words-unreadable");
    let [good, bad, missing] = ["good", "bad", "missing"].map(|name| folder.file(name));
    fs::write(&good, "just these three").expect("it is ours");
    fs::write(&bad, b"\xff\xfe\x00").expect("it is ours");

    let program = env!("CARGO_BIN_EXE_word_count");
    let output = Command::new(program).args([&missing, &bad, &good]).output().expect("it is built");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("3 words in 1 files"), "{output:?}");
    let complaints = String::from_utf8_lossy(&output.stderr);
    for path in [&missing, &bad] {
        let named = |line: &str| line.contains(&path.display().to_string());
        assert_eq!(complaints.lines().filter(|line| named(line)).count(), 1, "{complaints}");
    }
    assert!(!complaints.contains(&good.display().to_string()), "{complaints}");
}

/// A server, which is killed when dropped.
struct Server {
    child: Child,
    address: String,
    /// Kept open, because a server may print more.
    _output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts the server on any local port, and reads the port from its first line.
    fn start(program: &str, more: &[&str]) -> Self {
        let mut child = Command::new(program)
            .arg("127.0.0.1:0")
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was built beside this test");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        output.read_line(&mut line).expect("it says where it listens");
        let at = line.find("127.0.0.1:").expect("the line names the address");
        let address = line[at..].split([' ', '/', '\n']).next().unwrap_or_default().to_owned();
        Self { child, address, _output: output }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).expect("it serves")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.child.try_wait().expect("it is our child");
        let _ = self.child.kill();
        let _ = self.child.wait();
        assert!(ended.is_none() || std::thread::panicking(), "a server ended by itself: {ended:?}");
    }
}

/// Sends everything, shuts down the sending side, and reads until the other side ends.
fn exchange(mut stream: TcpStream, sent: &str) -> String {
    stream.write_all(sent.as_bytes()).expect("it listens");
    stream.shutdown(Shutdown::Write).expect("it is connected");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).expect("it replies");
    heard
}

#[test]
fn echo_with_an_address_serves_one_after_the_other() {
    let server = Server::start(env!("CARGO_BIN_EXE_echo"), &[]);
    for text in ["one", "two"] {
        assert_eq!(exchange(server.connect(), text), text);
    }
}

#[test]
fn chat_with_an_address_carries_lines_from_each_to_the_others() {
    let server = Server::start(env!("CARGO_BIN_EXE_chat"), &[]);
    let [mut ann, mut bob] = [(); 2].map(|()| BufReader::new(server.connect()));
    let heard = |guest: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        guest.read_line(&mut line).expect("it speaks in lines");
        line
    };
    assert_eq!((heard(&mut ann), heard(&mut bob)), ("welcome\n".into(), "welcome\n".into()));
    ann.get_mut().write_all(b"hello\n").expect("it listens");
    assert_eq!(heard(&mut bob), "hello\n");
}

#[test]
fn chat_disconnects_a_client_that_sends_an_endless_line() {
    let server = Server::start(env!("CARGO_BIN_EXE_chat"), &[]);
    let mut endless = server.connect();
    endless.write_all(&[b'x'; 4096]).expect("so much is taken");
    let mut heard = String::new();
    endless.read_to_string(&mut heard).expect("the connection is closed in order");
    assert_eq!(heard, "welcome\n");
}

#[test]
fn http_with_an_address_serves_a_handwritten_request() {
    let server = Server::start(env!("CARGO_BIN_EXE_http"), &[]);
    let request = "GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
    let mut stream = server.connect();
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).expect("it replies, and closes");
    assert!(heard.starts_with("HTTP/1.1 200 OK\r\n"), "{heard}");
    assert!(heard.ends_with("\r\n\r\nhello from blitz-io\n"), "{heard}");
}

#[test]
fn proxy_with_two_addresses_carries_both_ways() {
    let echo = Server::start(env!("CARGO_BIN_EXE_echo"), &[]);
    let proxy = Server::start(env!("CARGO_BIN_EXE_proxy"), &[&echo.address]);
    assert_eq!(exchange(proxy.connect(), "there and back"), "there and back");
}

/// Sends a request to a web server; returns the status line, and the body.
#[track_caller]
fn get(server: &Server, path: &str) -> (String, Vec<u8>) {
    let mut stream = server.connect();
    let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).expect("it replies, and closes");
    let end = heard.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends so");
    let body = heard.split_off(end + 4);
    let head = String::from_utf8(heard).expect("a head is text");
    (head.lines().next().unwrap_or_default().to_owned(), body)
}

#[test]
fn render_server_draws_the_requested_picture() {
    let server = Server::start(env!("CARGO_BIN_EXE_render_server"), &[]);
    for (path, size) in [("/96x65", (96, 65)), ("/1x1", (1, 1)), ("/33x200", (33, 200))] {
        let (status, file) = get(&server, path);
        assert_eq!(status, "HTTP/1.1 200 OK", "{path}");
        let (width, height, pixels) = decoded(&file);
        assert_eq!((width, height), size);
        assert_eq!(colours(&pixels).len() > 10, size != (1, 1), "{path}");
        // The set is its own mirror image, so no row is in another's place.
        let rows = || pixels.chunks_exact(3 * width as usize);
        assert!(rows().eq(rows().rev()), "{path}");
    }
}

#[test]
fn render_server_refuses_what_is_no_size_and_serves_on() {
    let server = Server::start(env!("CARGO_BIN_EXE_render_server"), &[]);
    for path in ["/0x7", "/favicon.ico", "/640x480x3", "/99999999x99999999", "/4096x4096"] {
        let (status, body) = get(&server, path);
        assert_eq!(status, "HTTP/1.1 400 Bad Request", "{path}");
        let said = String::from_utf8(body).expect("it is text");
        assert!(said.contains("as in 640x480") || said.contains("at most"), "{path}: {said}");
    }
    assert_eq!(get(&server, "/").0, "HTTP/1.1 200 OK");
}

#[test]
fn render_server_outlives_clients_that_hang_up() {
    let server = Server::start(env!("CARGO_BIN_EXE_render_server"), &[]);
    // More than it draws at once, so some are dropped while they wait for their turn.
    for _ in 0..40 {
        let request = b"GET /320x240 HTTP/1.1\r\nhost: here\r\n\r\n";
        server.connect().write_all(request).expect("it listens");
    }
    let (status, file) = get(&server, "/96x65");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert_eq!(decoded(&file).0, 96);
    // Their permits were given back, and nothing continues forever.
    while get(&server, "/drawing").1 != b"0\n" {}
}

#[test]
fn a_port_in_use_is_reported_and_the_run_fails() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port of this machine's");
    let address = taken.local_addr().expect("it is bound").to_string();
    for program in [
        env!("CARGO_BIN_EXE_echo"),
        env!("CARGO_BIN_EXE_chat"),
        env!("CARGO_BIN_EXE_http"),
        env!("CARGO_BIN_EXE_render_server"),
    ] {
        let output = Command::new(program).arg(&address).output().expect("it was built");
        assert!(!output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("in use"), "{output:?}");
    }
}
