//! `select!` must refuse a branch that begins with its future, because it has no pattern.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        _ = async {} => {}
        async {} => {}
    }
}
