//! Records the processor of the machine that builds, so that an illegal instruction can be explained.

#[path = "src/platform.rs"]
mod platform;

fn main() {
    println!("cargo:rerun-if-changed=src/platform");
    if let Some(processor) = platform::Processor::of_this_machine() {
        println!("cargo:rustc-env=TIERBAR_BUILT_ON={}", processor.name);
        println!(
            "cargo:rustc-env=TIERBAR_BUILT_FOR={}",
            processor.instructions
        );
    }
}
