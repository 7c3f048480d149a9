//! An output is no `Result`.

#[blitz_io::main]
async fn main() {
    let _ = blitz_io::try_join!(async { Ok::<u8, u8>(1) }, async { 2 });
}
