//! What is waited for is no future.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        _ = async {} => {}
        _ = 5 => {}
    }
}
