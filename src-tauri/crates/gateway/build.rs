//! Rebuilds the crate when the UI's build changes: release binaries carry its files.

fn main() {
    println!("cargo::rerun-if-changed=../../../ui/dist");
}
