//! What `tierbar bench`, `tierbar tune` and `tierbar agent measure` share: the event stream of a measurement and the formatting of figures.

use crate::{
    client::{Client, admin_path, read},
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
    Code, Error, ModelKind, TierState,
    budget::gib,
    status::{Status, TierStatus},
};
use tierbar_measure::bench::{Figure, Progress};

/// The options that the commands have.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Tier to measure [default: the first with a model]
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Show the last report without measuring
    #[arg(long)]
    show: bool,
}

impl Common {
    pub(crate) fn new(tier: Option<String>, json: bool, show: bool) -> Self {
        Self { tier, json, show }
    }
}

/// Runs a measurement of a kind, `bench`, `tune` or `agent`, and prints its report. Uses the running host, or starts one.
/// Ctrl-C cancels it.
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
        // Dropping the stream closes the connection, which cancels the measurement.
        signal = tokio::signal::ctrl_c() => Err(match signal {
            Ok(()) => Error::new(Code::Cancelled, "the measurement was canceled; the tier's settings are unchanged"),
            Err(error) => Error::new(Code::Internal, format!("no signal handler: {error}")),
        }),
    };
    clear_progress();
    client.close().await;
    let report = outcome?;
    if json {
        output::write_line(&report.to_string());
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
        None => default_tier(client, kind).await?,
    };
    let path = admin_path(&["tiers", &tier, kind], &[]);
    if show {
        let mut last = client.get(&path).await?;
        return match last["report"].take() {
            Value::Null => {
                let message = format!("{tier} has no {kind} report yet");
                Err(Error::new(Code::NotFound, message).hint("run the command without --show"))
            }
            report => Ok(report),
        };
    }
    let response = client.send(Method::POST, &path, Some(body)).await?;
    let mut events = SseByteStream::new(response.bytes_stream());
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| interrupted(&error.to_string()))?;
        let Some(data) = event.data else { continue };
        let data: Value = serde_json::from_str(&data)
            .map_err(|error| interrupted(&format!("an event is not valid JSON: {error}")))?;
        if let Some(error) = Error::from_openai_body(&data) {
            return Err(error);
        }
        match event.event.as_deref() {
            Some("progress") => show_progress(&read(data)?),
            Some("report") => return Ok(data),
            _ => {}
        }
    }
    Err(interrupted("the connection closed"))
}

async fn default_tier(client: &Client, kind: &str) -> Result<String, Error> {
    let status: Status = read(client.get("/tierbar/v1/status").await?)?;
    let has_model = |tier: &&TierStatus| tier.model.is_some();
    // An agent goes on with what is loaded.
    let acts = |tier: &&TierStatus| {
        kind == "agent"
            && tier.kind == ModelKind::Chat
            && matches!(tier.state, TierState::Ready | TierState::Busy)
    };
    let mut tiers = status.tiers.iter().filter(has_model);
    let loaded = tiers.clone().find(acts);
    let tier = loaded.or_else(|| tiers.next());
    tier.map(|tier| tier.id.to_string()).ok_or_else(|| {
        Error::new(Code::ModelMissing, "no tier has a model yet")
            .hint("run `tierbar tier use fast MODEL`, or choose one in Settings")
    })
}

fn interrupted(reason: &str) -> Error {
    Error::new(
        Code::ShuttingDown,
        format!("the measurement was interrupted: {reason}"),
    )
}

/// Overwrites one line on a terminal; elsewhere, prints a line each.
fn show_progress(progress: &Progress) {
    // It names tiers and models, which may be anything.
    let doing = progress.doing.replace(char::is_control, " ");
    let line = format!("[{}/{}] {doing}", progress.done, progress.of);
    if std::io::stderr().is_terminal() {
        let _closed = write!(std::io::stderr(), "\r\x1b[K{line}");
    } else {
        output::error_line(&line);
    }
}

fn clear_progress() {
    if std::io::stderr().is_terminal() {
        let _closed = write!(std::io::stderr(), "\r\x1b[K");
    }
}

/// Returns a rate such as `41.2 ±3 %`.
pub(crate) fn format_rate(figure: Option<Figure>) -> String {
    figure.map_or_else(String::new, |figure| {
        let digits = usize::from(figure.median < 100.0);
        let noise = figure.spread() * 50.0;
        format!("{:.digits$} ±{noise:.0} %", figure.median)
    })
}

pub(crate) fn format_milliseconds(ms: f64) -> String {
    if ms < 10_000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.1} s", ms / 1000.0)
    }
}

pub(crate) fn format_bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "–".to_owned(), gib)
}

/// Returns a line about runs that other requests disturbed.
pub(crate) fn repeated_runs(disturbed: u32) -> String {
    match disturbed {
        0 => String::new(),
        1 => "Repeated 1 run that shared the tier with other requests.\n".to_owned(),
        runs => format!("Repeated {runs} runs that shared the tier with other requests.\n"),
    }
}

/// Formats rows of cells in aligned columns. The columns in `right` are right-aligned.
pub(crate) fn render_table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        // A row may have fewer cells than the widest one.
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
