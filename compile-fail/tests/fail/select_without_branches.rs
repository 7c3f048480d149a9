//! There is nothing to wait for.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {}
    blitz_io::select! { biased; }
}
