//! The server beside Rayon on our rayon-core.
//!
//! `mixed` builds and starts it. The server is its parent's source, included by path.

#[macro_use]
#[path = "../../src/server.rs"]
mod server;

use std::process::ExitCode;

mod on_tokio {
    server!(tokio);
    by_spawn!(tokio);
}

mod on_blitz {
    server!(blitz_io);

    async fn computed() -> u64 {
        blitz_io::parallel::run(crate::server::sort_for_a_request).await
    }
}

const RUNTIMES: [(&str, server::Listen); 2] =
    [("tokio", on_tokio::listen), ("blitz", on_blitz::listen)];

fn main() -> ExitCode {
    // Only the drop-in has this constant, so this compiles only if the patch is in force.
    let _proof = rayon_core::BLITZ_IO_DROPIN;
    let words = harness::words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    harness::exit(server::main(&words, &RUNTIMES))
}
