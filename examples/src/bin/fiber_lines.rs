//! A server for lines of text in the blocking style: plain loops, `std::io::BufRead`, no `async`.
//!
//! Each connection is a fiber. The code that reads and writes is std's own, `BufReader::lines` and
//! `writeln!`, which knows nothing of fibers: the socket below implements `std::io::Read` and
//! `Write`, and waits in them. A parser or a codec that was written for blocking streams would work
//! in the same way.
//!
//! ```text
//! add 1 2 3        6
//! upper hello      HELLO
//! quit             (ends the connection)
//! ```
//!
//! With an address (`fiber_lines 127.0.0.1:7000`) it serves forever. Without one it serves itself:
//! several concurrent clients connect to it and check the replies.

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod lines {
    use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

    use blitz_io::{
        fiber,
        io::{AsyncReadExt, AsyncWriteExt},
        net::{
            TcpListener, TcpStream,
            tcp::{OwnedReadHalf, OwnedWriteHalf},
        },
    };

    const CLIENTS: i64 = 100;
    const LINES: i64 = 50;

    /// The reading half of a socket, for blocking code.
    struct Reader(OwnedReadHalf);

    impl Read for Reader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            fiber::wait(self.0.read(buffer))
        }
    }

    /// The writing half of a socket, for blocking code.
    struct Writer(OwnedWriteHalf);

    impl Write for Writer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            fiber::wait(self.0.write(bytes))
        }

        fn flush(&mut self) -> io::Result<()> {
            fiber::wait(self.0.flush())
        }
    }

    fn parts(socket: TcpStream) -> (BufReader<Reader>, BufWriter<Writer>) {
        let (reader, writer) = socket.into_split();
        (BufReader::new(Reader(reader)), BufWriter::new(Writer(writer)))
    }

    /// Returns the reply to a line; `None` ends the connection.
    fn reply(line: &str) -> Option<String> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match command {
            "add" => {
                let numbers: Result<Vec<i64>, _> =
                    rest.split_whitespace().map(str::parse).collect();
                match numbers {
                    Ok(numbers) => {
                        numbers.iter().fold(0, |sum: i64, n| sum.wrapping_add(*n)).to_string()
                    }
                    Err(error) => format!("error: {error}; give whole numbers"),
                }
            }
            "upper" => rest.to_uppercase(),
            "quit" => return None,
            _ => format!("error: `{command}` is not known; use add, upper or quit"),
        })
    }

    /// Serves one connection, written as if there were nothing asynchronous.
    fn talk(socket: TcpStream) -> io::Result<()> {
        let (reader, mut writer) = parts(socket);
        for line in reader.lines() {
            let Some(reply) = reply(&line?) else { break };
            writeln!(writer, "{reply}")?;
            writer.flush()?;
        }
        Ok(())
    }

    fn serve(listener: &TcpListener) -> io::Result<()> {
        loop {
            let (socket, client) = fiber::wait(listener.accept())?;
            let connection = fiber::Builder::new().name("connection");
            let talk = move || {
                if let Err(error) = talk(socket) {
                    eprintln!("{client}: {error}");
                }
            };
            // SAFETY: obligations 1 and 2 are not to wait in an initialiser or in a scope of a
            // thread-local. `talk` waits in `Read` and `Write` only, which std's buffers and
            // iterators call outside of both.
            unsafe { connection.spawn(talk)? };
        }
    }

    /// Sends requests to the server, and checks its replies.
    fn exchange(address: std::net::SocketAddr, client: i64) -> io::Result<()> {
        let (mut reader, mut writer) = parts(fiber::wait(TcpStream::connect(address))?);
        let mut said = String::new();
        for line in 0..LINES {
            writeln!(writer, "add {client} {line}")?;
            writer.flush()?;
            said.clear();
            reader.read_line(&mut said)?;
            assert_eq!(said.trim().parse(), Ok(client + line));
        }
        writeln!(writer, "upper fibers\nadd one\nquit")?;
        writer.flush()?;
        said.clear();
        reader.read_to_string(&mut said)?;
        assert!(said.starts_with("FIBERS\nerror: invalid digit"), "{said}");
        Ok(())
    }

    pub(crate) async fn main() -> io::Result<()> {
        let address = std::env::args().nth(1);
        let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
        let bound = listener.local_addr()?;
        println!("fiber_lines listens at {bound}");
        let server = fiber::Builder::new().name("server");
        // SAFETY: obligations 1 and 2 are not to wait in an initialiser or in a scope of a
        // thread-local. The closure waits in `accept`, which is called by its own loop outside of
        // both.
        let server = unsafe { server.spawn(move || serve(&listener))? };
        if address.is_some() {
            return server.await?;
        }
        let start = |client| {
            // SAFETY: obligations 1 and 2 are not to wait in an initialiser or in a scope of a
            // thread-local. `exchange` waits in `Read` and `Write` only, outside of both, as the
            // connections of the server do.
            unsafe { fiber::spawn(move || exchange(bound, client)) }
        };
        let clients: Vec<_> = (0..CLIENTS).map(start).collect();
        for client in clients {
            client.await??;
        }
        server.abort();
        println!("{CLIENTS} clients had {LINES} replies each");
        Ok(())
    }
}

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
#[blitz_io::main]
async fn main() -> std::io::Result<()> {
    lines::main().await
}

#[cfg(not(all(unix, any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn main() {
    println!("fibers are for Unix on x86-64 and aarch64");
}
