//! `select!` must refuse a pattern whose type is not that of the branch's output.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        Some(_) = async { 1 } => {}
    }
}
