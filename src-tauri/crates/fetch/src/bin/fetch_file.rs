//! One transfer in a process of its own, which tests kill and benchmarks time.

use std::{path::PathBuf, process::ExitCode, sync::Arc};
use tierbar_fetch::{
    FileSpec, Progress, RateLimit, Terms, TokenFor, Url, Web, WebOptions, transfer_with,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const HELP: &str = "\
usage: fetch-file URL DEST [option VALUE]…

Fetches URL into the absolute path DEST, resuming what an earlier run left in DEST.part, and prints the file's
sha256. Exit status: 0 fetched and verified, 1 failed (the error as JSON on stderr), 2 wrong arguments.

  --size BYTES      refuse another size
  --sha256 HEX      refuse another hash
  --rate BYTES      at most so many bytes a second
  --margin BYTES    leave so much of the volume free (default: 1 GiB, or a twentieth of a smaller volume)
";

struct Arguments {
    spec: FileSpec,
    rate: Option<u64>,
    terms: Terms,
}

fn arguments(mut given: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut arguments = Arguments {
        spec: FileSpec {
            url: Url::parse(&given.next()?).ok()?,
            dest: PathBuf::from(given.next()?),
            size: None,
            sha256: None,
        },
        rate: None,
        terms: Terms::default(),
    };
    while let Some(option) = given.next() {
        let value = given.next()?;
        let number = value.parse();
        match option.as_str() {
            "--size" => arguments.spec.size = Some(number.ok()?),
            "--sha256" => arguments.spec.sha256 = Some(value),
            "--rate" => arguments.rate = Some(number.ok()?),
            "--margin" => arguments.terms.margin = Some(number.ok()?),
            _ => return None,
        }
    }
    Some(arguments)
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program's output"
)]
async fn main() -> ExitCode {
    let Some(arguments) = arguments(std::env::args().skip(1)) else {
        eprint!("{HELP}");
        let wants_help = std::env::args().any(|argument| argument == "--help");
        return ExitCode::from(if wants_help { 0 } else { 2 });
    };
    let tokens: TokenFor = Arc::new(|_| None);
    let fetched = match Web::new(WebOptions::default()) {
        Ok(web) => {
            transfer_with(
                &arguments.terms,
                &web,
                &arguments.spec,
                &tokens,
                &RateLimit::new(arguments.rate),
                watch::Sender::new(Progress::default()),
                CancellationToken::new(),
            )
            .await
        }
        Err(error) => Err(error),
    };
    match fetched {
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
