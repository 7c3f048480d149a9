//! `try_join!` must refuse different types of errors, because it returns one of them.

#[blitz_io::main]
async fn main() {
    let _ = blitz_io::try_join!(async { Err::<(), u8>(1) }, async { Err::<(), &str>("two") });
}
