//! `join!` must refuse semicolons, because its futures are separated by commas.

#[blitz_io::main]
async fn main() {
    blitz_io::join!(async {}; async {});
    blitz_io::join!(random; async {});
}
