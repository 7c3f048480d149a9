//! `select!` must refuse a handler without a comma after it, unless the handler is a block.

#[blitz_io::main]
async fn main() {
    blitz_io::select! {
        _ = async {} => 1
        _ = async {} => 2
    };
}
