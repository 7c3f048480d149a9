//! A branch ends after its future.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        _ = async {},
    }
}
