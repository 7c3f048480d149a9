//! A handler that is no block needs a comma.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        _ = async {} => 1
        _ = async {} => 2
    };
}
