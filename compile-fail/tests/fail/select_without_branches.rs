//! `select!` must refuse to have no branches, because it would wait for ever.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {}
    blitz_io::select! { biased; }
}
