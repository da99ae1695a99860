//! What `tierbar bench` and `tierbar tune` share: the stream of a measurement, and how its figures are written.

use crate::{
    client::{Client, admin, read},
    output,
};
use futures_util::StreamExt;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sse_stream::SseByteStream;
use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
};
use tierbar_core::{
    Code, Error,
    bench::{Figure, Progress},
    budget::gib,
    status::Status,
};

/// What both are told.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// The tier to measure [default: the first that has a model]
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Show what the last one told, and measure nothing
    #[arg(long)]
    show: bool,
}

/// Makes a measurement of a kind, `bench` or `tune`, and prints its report. It runs on the host that runs, or on one of
/// our own. Ctrl-C calls it off.
pub(crate) async fn run<T: DeserializeOwned>(
    home: Option<PathBuf>,
    kind: &'static str,
    common: Common,
    body: Value,
    text: fn(&T) -> String,
) -> Result<(), Error> {
    let Common { tier, json, show } = common;
    let client = Client::running_or_own(home).await?;
    let outcome = tokio::select! {
        outcome = report(&client, kind, tier, &body, show) => outcome,
        // Dropping the stream closes the connection, which calls the measurement off.
        interrupted = tokio::signal::ctrl_c() => Err(match interrupted {
            Ok(()) => Error::new(Code::Cancelled, "called off; the tier is as it was"),
            Err(error) => Error::new(Code::Internal, format!("no signal handler: {error}")),
        }),
    };
    clear();
    client.close().await;
    let report = outcome?;
    if json {
        output::line(&report.to_string());
    } else {
        output::write(&text(&read(report)?));
    }
    Ok(())
}

async fn report(
    client: &Client,
    kind: &str,
    tier: Option<String>,
    body: &Value,
    show: bool,
) -> Result<Value, Error> {
    let tier = match tier {
        Some(tier) => tier,
        None => first_with_model(client).await?,
    };
    let path = admin(&["tiers", &tier, kind], &[]);
    if show {
        let mut last = client.get(&path).await?;
        return match last["report"].take() {
            Value::Null => {
                let message = format!("there is no {kind} of {tier} to show yet");
                Err(Error::new(Code::NotFound, message).hint("leave --show away to make one"))
            }
            report => Ok(report),
        };
    }
    let response = client.send(Method::POST, &path, Some(body)).await?;
    let mut events = SseByteStream::new(response.bytes_stream());
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| broken_off(&error.to_string()))?;
        let Some(data) = event.data else { continue };
        let data: Value = serde_json::from_str(&data)
            .map_err(|error| broken_off(&format!("an event that is not JSON, {error}")))?;
        if let Some(error) = Error::from_openai_body(&data) {
            return Err(error);
        }
        match event.event.as_deref() {
            Some("progress") => progress(&read(data)?),
            Some("report") => return Ok(data),
            _ => {}
        }
    }
    Err(broken_off("the connection ended"))
}

async fn first_with_model(client: &Client) -> Result<String, Error> {
    let status: Status = read(client.get("/tierbar/v1/status").await?)?;
    let first = status.tiers.into_iter().find(|tier| tier.model.is_some());
    first.map(|tier| tier.id.to_string()).ok_or_else(|| {
        Error::new(Code::ModelMissing, "no tier has a model yet")
            .hint("choose one in Settings, or set `model` of a tier in config.toml")
    })
}

fn broken_off(reason: &str) -> Error {
    Error::new(
        Code::ShuttingDown,
        format!("the measurement broke off: {reason}"),
    )
}

/// One line that is written over, or a line each where nobody looks on.
fn progress(progress: &Progress) {
    let line = format!("[{}/{}] {}", progress.done, progress.of, progress.doing);
    if std::io::stderr().is_terminal() {
        let _nobody_reads = write!(std::io::stderr(), "\r\x1b[K{line}");
    } else {
        output::error_line(&line);
    }
}

fn clear() {
    if std::io::stderr().is_terminal() {
        let _nobody_reads = write!(std::io::stderr(), "\r\x1b[K");
    }
}

/// Such as `41.2 ±3 %`.
pub(crate) fn rate(figure: Option<Figure>) -> String {
    figure.map_or_else(String::new, |figure| {
        let digits = usize::from(figure.median < 100.0);
        let noise = figure.spread() * 50.0;
        format!("{:.digits$} ±{noise:.0} %", figure.median)
    })
}

pub(crate) fn milliseconds(ms: f64) -> String {
    if ms < 10_000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.1} s", ms / 1000.0)
    }
}

pub(crate) fn bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "–".to_owned(), gib)
}

/// What others cost a measurement, as a line of its own.
pub(crate) fn again(disturbed: u32) -> String {
    match disturbed {
        0 => String::new(),
        1 => "One run was made again: the tier answered others beside it.\n".to_owned(),
        runs => format!("{runs} runs were made again: the tier answered others beside them.\n"),
    }
}

/// Rows of cells under a heading, each column as wide as it has to be. The columns named by `right` hold numbers.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        // The last cell of a row may run on.
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            if right.contains(&column) {
                line += &format!("{cell:>width$}  ");
            } else {
                line += &format!("{cell:<width$}  ");
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
