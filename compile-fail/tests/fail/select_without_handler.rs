//! `select!` must refuse a branch that ends after its future, because it has no handler.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        _ = async {},
    }
}
