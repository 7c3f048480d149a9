//! A precondition is true or false.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        _ = async {}, if 1 => {}
    }
}
