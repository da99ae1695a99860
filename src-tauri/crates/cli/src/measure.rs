//! What `tierbar bench`, `tierbar tune` and `tierbar agent measure` share: the event stream of a measurement and the formatting of figures.

use crate::{
    client::{Client, Event, admin_path, read_answer},
    confirm::no_signals,
    output,
};
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    fmt::Display,
    io::{IsTerminal, Write},
    path::PathBuf,
};
use tierbar_core::{Code, Error, ModelKind, TierState, budget::gib, status::TierStatus};
use tierbar_measure::bench::{Figure, Progress};

/// The options that the commands have.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Tier to measure [default: the first with a model]
    #[arg(long, value_name = "NAME")]
    pub(crate) tier: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the last report without measuring
    #[arg(long)]
    pub(crate) show: bool,
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
            Err(error) => no_signals(error),
        }),
    };
    clear_progress();
    client.close().await;
    output::write_answer(json, outcome?, |report| text(&report))
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
    let mut events = client.events(Method::POST, &path, Some(body)).await?;
    while let Some(Event { name, data }) = events.next().await.map_err(interrupted)? {
        if let Some(error) = Error::from_openai_body(&data) {
            return Err(error);
        }
        match name.as_deref() {
            Some("progress") => show_progress(&read_answer(data)?),
            Some("report") => return Ok(data),
            _ => {}
        }
    }
    Err(interrupted("the connection closed"))
}

async fn default_tier(client: &Client, kind: &str) -> Result<String, Error> {
    let all = client.tiers().await?;
    let has_model = |tier: &&TierStatus| tier.model.is_some();
    // An agent goes on with what is loaded.
    let acts = |tier: &&TierStatus| {
        kind == "agent"
            && tier.kind == ModelKind::Chat
            && matches!(tier.state, TierState::Ready | TierState::Busy)
    };
    let mut tiers = all.iter().filter(has_model);
    let loaded = tiers.clone().find(acts);
    let tier = loaded.or_else(|| tiers.next());
    tier.map(|tier| tier.id.to_string()).ok_or_else(|| {
        Error::new(Code::ModelMissing, "no tier has a model yet")
            .hint("run `tierbar tier use fast MODEL`, or choose one in Settings")
    })
}

fn interrupted(why: impl Display) -> Error {
    let message = format!("the measurement was interrupted: {why}");
    Error::new(Code::ShuttingDown, message)
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

pub(crate) fn repeated_runs(disturbed: u32) -> String {
    if disturbed == 0 {
        return String::new();
    }
    let runs = output::count(disturbed.into(), "run");
    format!("Repeated {runs} that shared the tier with other requests.\n")
}

/// Formats rows of cells in aligned columns. The columns in `right` are right-aligned.
pub(crate) fn render_table<R: AsRef<[String]>>(rows: &[R], right: &[usize]) -> String {
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row.as_ref()[column]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, &width)) in row.as_ref().iter().zip(&widths).enumerate() {
            line += &match right.contains(&column) {
                true => format!("{cell:>width$}  "),
                false => format!("{cell:<width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
