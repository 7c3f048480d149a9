//! `else` is not the last branch.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        else => {},
        _ = async {} => {}
    }
}
