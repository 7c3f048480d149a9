//! Only async code can wait.

fn main() {
    blitz_io::select! {
        _ = async {} => {}
    }
}
