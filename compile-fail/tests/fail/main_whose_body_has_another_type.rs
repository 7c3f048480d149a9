//! The error is the body's own.

#[blitz_io::main]
async fn main() -> Result<(), String> {
    "no result"
}
