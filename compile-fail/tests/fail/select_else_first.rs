//! `select!` must refuse an `else` before other branches, because it runs if none of them matched.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        else => {},
        _ = async {} => {}
    }
}
