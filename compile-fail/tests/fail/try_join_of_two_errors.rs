//! All futures have the same type of error.

#[blitz_io::main]
async fn main() {
    let _ = blitz_io::try_join!(async { Err::<(), u8>(1) }, async { Err::<(), &str>("two") });
}
