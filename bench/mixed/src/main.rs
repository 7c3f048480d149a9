//! A server under load beside parallel sorts in its process, on Tokio with Rayon and on ours.
//!
//! `mixed run` is the driver. For each figure it starts a server (itself, or `ours/`, which it
//! builds first) and a client (itself), and notifies the server when the client begins and ends to
//! count. ../README.md says why comparisons are run this way.

#[allow(dead_code, reason = "bench/sched uses all of it")]
#[path = "../../sched/src/machine.rs"]
mod machine;
#[allow(dead_code, reason = "bench/sched uses all of it")]
#[path = "../../sched/src/measure.rs"]
mod measure;
#[macro_use]
mod server;
mod client;
mod driver;
mod report;

use std::process::ExitCode;

/// The packages whose versions a record names.
pub(crate) const PACKAGES: [&str; 3] = ["tokio", "rayon", "rayon-core"];

/// A runtime beside a pool.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) runtime: &'static str,
    /// True if Rayon runs on our rayon-core.
    pub(crate) on_ours: bool,
    /// True if it takes part only when named.
    pub(crate) is_extra: bool,
}

/// All contenders.
pub(crate) const CONTENDERS: [Contender; 5] = [
    Contender {
        name: "stock",
        what: "Tokio beside Rayon: what ratios are against",
        runtime: "tokio",
        on_ours: false,
        is_extra: false,
    },
    Contender {
        name: "stock-again",
        what: "the same once more: how far two equal things differ is the noise floor",
        runtime: "tokio",
        on_ours: false,
        is_extra: false,
    },
    Contender {
        name: "blitz",
        what: "blitz-io beside the published rayon on our rayon-core",
        runtime: "blitz",
        on_ours: true,
        is_extra: false,
    },
    Contender {
        name: "tokio-ours",
        what: "Tokio beside Rayon on our rayon-core: the pool's part (only when named)",
        runtime: "tokio",
        on_ours: true,
        is_extra: true,
    },
    Contender {
        name: "blitz-rayon",
        what: "blitz-io beside the stock Rayon: the runtime's part (only when named)",
        runtime: "blitz",
        on_ours: false,
        is_extra: true,
    },
];

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The server's arguments.
    pub(crate) server: [&'static str; 2],
    pub(crate) client: Client,
}

/// The load on the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    None,
    /// The rate of requests that the command line sets.
    FixedRate,
    /// The next request follows each reply.
    ClosedLoop,
}

pub(crate) const ROWS: [Row; 6] = [
    Row {
        name: "echo_alone",
        what: "echoes at a fixed rate; nobody sorts",
        server: ["echo", "quiet"],
        client: Client::FixedRate,
    },
    Row {
        name: "sort_alone",
        what: "a thread that sorts 1,000,000 u64 over and over by par_sort_unstable(); no client",
        server: ["echo", "sorting"],
        client: Client::None,
    },
    Row {
        name: "mixed",
        what: "both: echoes at a fixed rate beside the sorts",
        server: ["echo", "sorting"],
        client: Client::FixedRate,
    },
    Row {
        name: "echo_full_alone",
        what: "echoes in a closed loop, each connection with one request at a time; nobody sorts",
        server: ["echo", "quiet"],
        client: Client::ClosedLoop,
    },
    Row {
        name: "mixed_full",
        what: "both: echoes in a closed loop beside the sorts",
        server: ["echo", "sorting"],
        client: Client::ClosedLoop,
    },
    Row {
        name: "mixed_handler",
        what: "the handler computes: each 100th request of a connection waits for a sort of \
               100,000 u64 on the pool (heavy), the others are echoes",
        server: ["computing", "quiet"],
        client: Client::FixedRate,
    },
];

const USAGE: &str = "\
usage: mixed run [options]   measure, print the table, record it
       mixed list            name the rows and the contenders

options of run:
  --quick               few rounds, short spans, for a first look
  --only ROW[,ROW]      these rows alone
  --contenders A[,B]    these contenders alone (see `mixed list`)
  --connections N       of the client (50)
  --rate N              requests in a second, on all connections together (10000)
  --rounds N            rounds for each row
  --out DIR             where the record goes (bench/record)
  --no-record           print the table only";

mod on_tokio {
    server!(tokio);
    by_spawn!(tokio);
}

mod on_blitz {
    server!(blitz_io);
    by_spawn!(blitz_io);
}

/// The runtimes that run beside the stock Rayon.
const RUNTIMES: [(&str, server::Listen); 2] =
    [("tokio", on_tokio::listen), ("blitz", on_blitz::listen)];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--server", ..] => server::main(&words, &RUNTIMES),
        ["--client", port, load @ ..] => client(port, load),
        ["run", options @ ..] => driver::Plan::parse(options).and_then(|plan| driver::run(&plan)),
        ["list"] => {
            for Row { name, what, .. } in &ROWS {
                println!("  {name:<16} {what}");
            }
            for Contender { name, what, .. } in &CONTENDERS {
                println!("  {name:<16} {what}");
            }
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn client(port: &str, load: &[&str]) -> Result<(), String> {
    let known = port.parse().ok().zip(client::Load::parse(load));
    let (port, load) = known.ok_or("port and load are numbers: this is started by `mixed run`")?;
    client::main(port, load);
    Ok(())
}
