//! What `tests/bench/gateway` measures with: a server of OpenAI's dialect that writes tokens at a requested pace, with the
//! time in each, and a client that reads them.
//!
//! `gateway_load stub (--socket PATH | --port N)` serves until it is ended. `gateway_load load --at ADDRESS …` opens its
//! streams, reads them to their ends, and prints one line of JSON. `gateway_load idle …` opens streams, prints that, and
//! holds them until its stdin closes.

mod client;
mod stub;

use clap::{Args, Parser};
use std::{
    error::Error,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

type Failed = Box<dyn Error + Send + Sync>;

/// What a token consists of: this, the nanoseconds since 1970 in [`DIGITS`] digits, and [`AFTER`]. It passes through any JSON
/// unchanged.
const BEFORE: &[u8] = b"\"T";
const DIGITS: usize = 19;
const AFTER: &[u8] = b"Z\"";

#[derive(Parser)]
enum Called {
    Stub(Place),
    Load(Load),
    Idle(Load),
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Place {
    #[arg(long)]
    socket: Option<PathBuf>,
    #[arg(long)]
    port: Option<u16>,
}

#[derive(Args, Clone)]
struct Load {
    /// `127.0.0.1:PORT`, or the path of a socket.
    #[arg(long)]
    at: String,
    #[arg(long, default_value = "stub")]
    model: String,
    /// As `Authorization: Bearer`.
    #[arg(long)]
    key: Option<String>,
    #[arg(long, default_value_t = 1)]
    streams: usize,
    /// Of each stream.
    #[arg(long, default_value_t = 1)]
    tokens: usize,
    /// Between two tokens of a stream; 0 for as fast as possible.
    #[arg(long, default_value_t = 0)]
    interval_us: u64,
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    match Called::parse() {
        Called::Stub(place) => stub::serve(place).await,
        Called::Load(load) => client::load(load).await,
        Called::Idle(load) => client::idle(load).await,
    }
}
