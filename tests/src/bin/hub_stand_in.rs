//! The hub's stand-in as a program: `hub_stand_in --port N --rate BYTES_PER_SECOND` prints where it is, as one line of
//! JSON, and serves until it is ended. Point `HF_ENDPOINT` at it.

#![allow(
    clippy::print_stdout,
    reason = "the test that starts it reads the address there"
)]

use clap::Parser;
use serde_json::json;
use std::{fs, time::Duration};
use tierbar_mixture::Random;
use tierbar_tests::{
    binaries,
    hub::{HubFile, HubRepository, HubStandIn, Options, SMOLLM2, TOKEN},
};

#[derive(Parser)]
struct Arguments {
    /// 0 for any.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Bytes per second of all answers together; 0 for as many as go.
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// Milliseconds before each answer.
    #[arg(long, default_value_t = 0)]
    latency: u64,
    /// Also has the tiers' default models, by the names of the catalog: small ones of their architectures that answer, at random.
    #[arg(long)]
    defaults: bool,
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let mut options = Options {
        port: arguments.port,
        rate: arguments.rate,
        latency: Duration::from_millis(arguments.latency),
        ..Options::default()
    };
    if arguments.defaults {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let random = |kind: Random| {
            let path = folder.path().join(kind.architecture());
            let written = kind.write(&binaries::model(SMOLLM2), &path);
            written.expect("a model of random weights");
            fs::read(&path).expect("the model's file")
        };
        let (gemma, qwen) = (random(Random::Gemma4), random(Random::Qwen35Moe));
        let small = |name: &str| match name.starts_with("gemma") {
            true => HubFile::new(name, &gemma),
            false => HubFile::new(name, &qwen),
        };
        options.repositories.extend(HubRepository::defaults(small));
    }
    let repositories: Vec<_> = options
        .repositories
        .iter()
        .map(|repository| repository.id.clone())
        .collect();
    let hub = HubStandIn::start(options).await;
    println!(
        "{}",
        json!({"url": hub.url(), "storage": hub.storage_url(), "token": TOKEN, "repositories": repositories})
    );
    std::future::pending::<()>().await;
}
