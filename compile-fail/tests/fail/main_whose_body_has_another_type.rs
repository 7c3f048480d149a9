//! A body of the wrong type must be reported at the body, not at `#[blitz_io::main]`.

#[blitz_io::main]
async fn main() -> Result<(), String> {
    "no result"
}
