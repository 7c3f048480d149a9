//! Nothing is linked; Cargo wants a script where there is `links`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
