//! Reads the header of the model at a URL and prints it as JSON: `remote_header URL`. For the benchmark.

use std::{process::ExitCode, sync::Arc};
use tierbar_core::{Code, Error};
use tierbar_fetch::{TokenFor, Url, Web, WebOptions};

async fn read(url: &str) -> Result<String, Error> {
    let url = Url::parse(url).map_err(|error| Error::new(Code::BadRequest, error.to_string()))?;
    let tokens: TokenFor = Arc::new(|_| None);
    let web = Web::new(WebOptions::default())?;
    let model = tierbar_library::remote::header(&web, &tokens, &url).await?;
    serde_json::to_string(&model.account)
        .map_err(|error| Error::new(Code::Internal, error.to_string()))
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program's output"
)]
async fn main() -> ExitCode {
    let url = std::env::args().nth(1).unwrap_or_default();
    match read(&url).await {
        Ok(account) => {
            println!("{account}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", error.openai_body());
            ExitCode::FAILURE
        }
    }
}
