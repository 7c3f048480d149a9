//! The pattern is none of the output's type.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        Some(_) = async { 1 } => {}
    }
}
