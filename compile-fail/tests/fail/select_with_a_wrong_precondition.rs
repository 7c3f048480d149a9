//! `select!` must refuse a precondition that is no `bool`.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        _ = async {}, if 1 => {}
    }
}
