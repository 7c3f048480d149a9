//! `join!` must not compile outside of async code, because it contains an `await`.

fn main() {
    blitz_io::join!(async {});
}
