//! Sets the cfg by which the ring of blitz-io includes `src/choices.rs`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(blitz_variants)");
    println!("cargo::rustc-cfg=blitz_variants");
}
