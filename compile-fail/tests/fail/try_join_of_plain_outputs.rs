//! `try_join!` must refuse an output that is no `Result`, because it cannot be an error.

#[blitz_io::main]
async fn main() {
    let _ = blitz_io::try_join!(async { Ok::<u8, u8>(1) }, async { 2 });
}
