//! Handlers have one type.

#[blitz_io::main]
async fn main() {
    let _ = blitz_io::select! {
        _ = async {} => 1,
        _ = async {} => "two",
    };
}
