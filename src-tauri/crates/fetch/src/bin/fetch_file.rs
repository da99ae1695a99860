//! One transfer in a process of its own, which tests kill and benchmarks time.

use std::{path::PathBuf, process::ExitCode, sync::Arc};
use tierbar_core::Error;
use tierbar_fetch::{
    FetchedFile, FileSpec, RateLimit, Terms, TokenFor, Url, Web, WebOptions, transfer,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const HELP: &str = "\
usage: fetch-file URL DEST [option VALUE]…

Fetches URL into the absolute path DEST, resuming what an earlier run left in DEST.part, and prints the file's
sha256. Exit status: 0 fetched and verified, 1 failed (the error as JSON on stderr), 2 wrong arguments.

  --sha256 HEX      refuse another hash
  --margin BYTES    leave so much of the volume free (default: 1 GiB, or a twentieth of a smaller volume)
";

fn arguments(mut given: impl Iterator<Item = String>) -> Option<(FileSpec, Terms)> {
    let mut spec = FileSpec {
        url: Url::parse(&given.next()?).ok()?,
        dest: PathBuf::from(given.next()?),
        size: None,
        sha256: None,
    };
    let mut terms = Terms::default();
    while let Some(option) = given.next() {
        let value = given.next()?;
        match option.as_str() {
            "--sha256" => spec.sha256 = Some(value),
            "--margin" => terms.margin = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some((spec, terms))
}

async fn fetch(spec: &FileSpec, terms: &Terms) -> Result<FetchedFile, Error> {
    let web = Web::new(WebOptions::default())?;
    let tokens: TokenFor = Arc::new(|_| None);
    transfer(
        terms,
        &web,
        spec,
        &tokens,
        &RateLimit::new(0),
        watch::Sender::default(),
        CancellationToken::new(),
    )
    .await
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program's output"
)]
async fn main() -> ExitCode {
    let Some((spec, terms)) = arguments(std::env::args().skip(1)) else {
        eprint!("{HELP}");
        let wants_help = std::env::args().any(|argument| argument == "--help");
        return ExitCode::from(if wants_help { 0 } else { 2 });
    };
    match fetch(&spec, &terms).await {
        Ok(fetched) => {
            println!("{}", fetched.sha256);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", error.openai_body());
            ExitCode::FAILURE
        }
    }
}
