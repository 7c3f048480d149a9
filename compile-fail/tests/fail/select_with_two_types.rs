//! `select!` must refuse handlers of different types, because it has one value.

#[blitz_io::main]
async fn main() {
    let _ = blitz_io::select! {
        _ = async {} => 1,
        _ = async {} => "two",
    };
}
