//! Writes a mixture of experts made of a dense model: `tierbar-mixture DENSE.gguf OUT.gguf EXPERTS USED skewed|flat`.

use anyhow::{Context, Result};
use std::path::Path;
use tierbar_mixture::{Mixture, Router};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dense, to, experts, used, router] = &arguments[..] else {
        anyhow::bail!("usage: tierbar-mixture DENSE.gguf OUT.gguf EXPERTS USED skewed|flat");
    };
    let mixture = Mixture {
        experts: experts.parse().context("EXPERTS")?,
        used: used.parse().context("USED")?,
        router: match router.as_str() {
            "skewed" => Router::Skewed,
            "flat" => Router::Flat,
            other => anyhow::bail!("{other} is neither skewed nor flat"),
        },
    };
    mixture.write(Path::new(dense), Path::new(to))
}
