//! Writes a mixture of experts: `tierbar-mixture DENSE.gguf OUT.gguf EXPERTS USED skewed|flat` and `tierbar-mixture DENSE.gguf
//! OUT.gguf qwen2moe` make one of a dense model. With another architecture, the weights are random and the dense model gives the
//! tokenizer.

use anyhow::{Context, Result};
use std::path::Path;
use tierbar_mixture::{Mixture, Random, Router, write_reranker, write_shared, write_wide};

const USAGE: &str = "usage: tierbar-mixture DENSE.gguf OUT.gguf EXPERTS USED skewed|flat|distinct
       tierbar-mixture DENSE.gguf OUT.gguf qwen2moe|qwen3moe|qwen35moe|gemma4|gpt-oss
       tierbar-mixture DENSE.gguf OUT.gguf wide DOUBLINGS
       tierbar-mixture ENCODER.gguf OUT.gguf reranker [TEMPLATE]";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [dense, to, experts, used, router] => {
            let mixture = Mixture {
                experts: experts.parse().context("EXPERTS")?,
                used: used.parse().context("USED")?,
                router: match router.as_str() {
                    "skewed" => Router::Skewed,
                    "flat" => Router::Flat,
                    "distinct" => Router::Distinct,
                    other => anyhow::bail!("{other} is no router"),
                },
            };
            mixture.write(Path::new(dense), Path::new(to))
        }
        [dense, to, shared] if shared == "qwen2moe" => {
            write_shared(Path::new(dense), Path::new(to))
        }
        [encoder, to, reranker] if reranker == "reranker" => {
            write_reranker(Path::new(encoder), Path::new(to), None)
        }
        [encoder, to, reranker, template] if reranker == "reranker" => {
            write_reranker(Path::new(encoder), Path::new(to), Some(template))
        }
        [dense, to, wide, doublings] if wide == "wide" => {
            let doublings = doublings.parse().context("DOUBLINGS")?;
            write_wide(Path::new(dense), Path::new(to), doublings)
        }
        [dense, to, architecture] => {
            let mut random = Random::ALL.into_iter();
            let random = random.find(|random| random.architecture() == architecture);
            let random = random.context(USAGE)?;
            random.write(Path::new(dense), Path::new(to))
        }
        _ => anyhow::bail!(USAGE),
    }
}
