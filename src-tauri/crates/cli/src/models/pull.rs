//! Fetching a model, told as it goes.

use crate::{
    client::{Client, admin, read},
    downloads::{Follow, progress},
    output,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::{
    cell::OnceCell,
    path::PathBuf,
    time::{Duration, Instant},
};
use tierbar_core::{
    Code, Error,
    download::{DownloadState, DownloadStatus},
    fit::Verdict,
};

/// How often a log gets a line.
const PERIOD: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// owner/repo[:quant], owner/repo/file.gguf, a URL, or a name of the catalog such as gemma-4-e4b
    #[arg(value_name = "MODEL")]
    model: String,
    /// Which of several downloads goes first
    #[arg(long, value_name = "PRIORITY", default_value = "normal", value_parser = ["low", "normal", "high"])]
    priority: String,
    /// Also if it cannot run on this machine
    #[arg(long)]
    anyway: bool,
}

/// To the end, also when the host ends before it, such as one that another command had started for itself.
pub(super) async fn run(
    client: &mut Client,
    home: Option<&PathBuf>,
    args: &Args,
) -> Result<(), Error> {
    // Before anything is begun: from here on Ctrl-C pauses.
    let mut interrupted = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
        .map_err(|error| Error::new(Code::Internal, format!("no signal handler: {error}")))?;
    let mut told = false;
    let outcome = loop {
        let (id, shown) = (OnceCell::new(), Shown::new());
        let outcome = tokio::select! {
            outcome = fetch(client, args, &mut told, &id, &shown) => outcome,
            _ = interrupted.recv() => pause(client, id.get()).await,
        };
        shown.clear();
        match outcome {
            Err(error) if error.code == Code::ShuttingDown && !client.is_own() => {
                *client = tokio::select! {
                    next = client.next(home.cloned()) => next?,
                    _ = interrupted.recv() => return Err(Error::new(Code::Cancelled, "stopped")
                        .hint("what has arrived is kept: the same command goes on with it")),
                };
                output::error_line("The host has ended; going on with another.");
            }
            outcome => break outcome,
        }
    };
    outcome.map(|done| {
        output::line(&format!("{} is here and verified.", done.file));
    })
}

async fn fetch(
    client: &Client,
    args: &Args,
    told: &mut bool,
    id: &OnceCell<String>,
    shown: &Shown,
) -> Result<DownloadStatus, Error> {
    if !*told {
        // Whatever is wrong with the model is told by the download itself.
        let asked = admin(&["models", "fit"], &[("model", &args.model)]);
        if let Ok(verdict) = client.get(&asked).await {
            tell(&read(verdict)?);
        }
    }
    let wish = json!({"reference": args.model, "priority": args.priority, "anyway": args.anyway});
    let begun: DownloadStatus = read(client.post(&admin(&["downloads"], &[]), &wish).await?)?;
    id.get_or_init(|| begun.id.clone());
    if !std::mem::replace(told, true) {
        for warning in &begun.warnings {
            output::error_line(&format!("note: {warning}"));
        }
    }
    watch(client, begun, shown).await
}

fn tell(verdict: &Verdict) {
    output::error_line(&verdict.summary);
    if let Some(warning) = &verdict.warning {
        output::error_line(warning);
    }
    if let Some(speed) = verdict.speed {
        output::error_line(&format!("Expected speed: {}.", output::speeds(speed)));
    }
    if let Some(instead) = &verdict.instead {
        output::error_line(&format!("Better here: {}", instead.reference));
    }
}

/// Until it is done, or will not go on by itself.
async fn watch(
    client: &Client,
    mut download: DownloadStatus,
    shown: &Shown,
) -> Result<DownloadStatus, Error> {
    let mut follow = Follow::begin(client).await?;
    loop {
        shown.show(&download);
        match download.state {
            DownloadState::Done => return Ok(download),
            DownloadState::Failed => {
                let reason = download.reason.unwrap_or_else(|| "it failed".to_owned());
                return Err(Error::new(Code::Unreachable, reason)
                    .hint("what has arrived is kept: the same command tries again"));
            }
            DownloadState::Paused => {
                return Err(Error::new(Code::Cancelled, "the download was paused")
                    .hint("the same command goes on with it"));
            }
            _ => {}
        }
        let id = download.id;
        let downloads = follow.next().await?;
        let Some(now) = downloads.into_iter().find(|download| download.id == id) else {
            return Err(Error::new(Code::Cancelled, "the download was cancelled"));
        };
        download = now;
    }
}

async fn pause(client: &Client, id: Option<&String>) -> Result<DownloadStatus, Error> {
    let Some(id) = id else {
        return Err(Error::new(
            Code::Cancelled,
            "stopped before anything was fetched",
        ));
    };
    let path = admin(&["downloads", id], &[]);
    let paused: DownloadStatus = read(client.patch(&path, &json!({"state": "paused"})).await?)?;
    if paused.state == DownloadState::Done {
        return Ok(paused);
    }
    Err(
        Error::new(Code::Cancelled, format!("paused: {}", progress(&paused)))
            .hint("what has arrived is kept: the same command goes on with it"),
    )
}

/// A bar on a terminal, lines in a log.
struct Shown {
    bar: Option<ProgressBar>,
    told: std::cell::Cell<Option<(Instant, DownloadState)>>,
}

impl Shown {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg}") {
            bar.set_style(style);
        }
        // Also a terminal may be one that draws nothing.
        let bar = (!bar.is_hidden()).then_some(bar);
        Self {
            bar,
            told: std::cell::Cell::new(None),
        }
    }

    fn show(&self, download: &DownloadStatus) {
        let told = progress(download);
        if let Some(bar) = &self.bar {
            if let Some(total) = download.total_bytes {
                bar.set_length(total);
            }
            bar.set_position(download.received_bytes);
            bar.set_message(told);
            return;
        }
        let due = self
            .told
            .get()
            .is_none_or(|(at, state)| at.elapsed() >= PERIOD || state != download.state);
        if due {
            self.told.set(Some((Instant::now(), download.state)));
            output::error_line(&told);
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
