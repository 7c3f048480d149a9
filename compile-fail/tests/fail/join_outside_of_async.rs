//! Only async code can wait.

fn main() {
    blitz_io::join!(async {});
}
