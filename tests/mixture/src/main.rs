//! Writes a mixture of experts made of a dense model: `tierbar-mixture DENSE.gguf OUT.gguf EXPERTS USED`.

use anyhow::{Context, Result};
use std::path::Path;
use tierbar_mixture::Mixture;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dense, to, experts, used] = &arguments[..] else {
        anyhow::bail!("usage: tierbar-mixture DENSE.gguf OUT.gguf EXPERTS USED");
    };
    let mixture = Mixture {
        experts: experts.parse().context("EXPERTS")?,
        used: used.parse().context("USED")?,
    };
    mixture.write(Path::new(dense), Path::new(to))
}
