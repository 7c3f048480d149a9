//! `select!` must refuse a value that is no future, because it cannot be polled.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        _ = async {} => {}
        _ = 5 => {}
    }
}
