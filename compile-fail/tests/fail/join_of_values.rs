//! What is waited for is no future.

#[blitz_io::main]
async fn main() {
    blitz_io::join!(async {}, 5);
}
