//! `tierbar models pull`: downloads a model and shows the progress.

use super::{choose_tier, list};
use crate::{
    client::{Client, admin_path, read_answer},
    confirm::no_signals,
    downloads::{RESUME_HINT, Updates, progress},
    output,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::{
    cell::OnceCell,
    future::{Future, poll_fn},
    path::PathBuf,
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};
use tierbar_core::{
    Code, Error, bad_request,
    download::{DownloadState, DownloadStatus, Include},
    fit::Verdict,
    units::file_size,
};
use tokio::signal::unix::{SignalKind, signal};

/// How often a line is printed where there is no terminal.
const PERIOD: Duration = Duration::from_secs(5);

/// How long Ctrl-C waits for the host to name a download that it may have started. Without the name, it cannot be paused.
const NAMED_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// owner/repo[:quant], owner/repo/file.gguf, URL, or catalog name such as gemma-4-e4b
    #[arg(value_name = "MODEL")]
    model: String,
    /// Priority among downloads
    #[arg(long, value_name = "PRIORITY", default_value = "normal", value_parser = ["low", "normal", "high"])]
    priority: String,
    /// Download even if the model cannot run on this machine
    #[arg(long)]
    anyway: bool,
    /// Leave out the projector; the model then accepts only text
    #[arg(long, conflicts_with = "only_media")]
    no_media: bool,
    /// Download only an installed model's projector for images and sound
    #[arg(long)]
    only_media: bool,
    /// Use the model in this tier once it is downloaded
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
    /// Folder on another disk, instead of the models folder
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Print the download as JSON when it is done, and ask nothing
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The host runs in another folder.
    fn folder(&self) -> Result<Option<PathBuf>, Error> {
        let absolute = self.to.as_ref().map(std::path::absolute).transpose();
        absolute.map_err(|error| bad_request(format!("--to: {error}")))
    }

    fn include(&self) -> Include {
        match (self.no_media, self.only_media) {
            (true, _) => Include::Model,
            (_, true) => Include::Projector,
            _ => Include::All,
        }
    }
}

/// Follows a download to the end, starting or resuming it if it has to be. It names no tier: which one gets the model was said when the
/// download was queued, and another choice since then stands.
pub(crate) async fn follow(
    client: &mut Client,
    home: Option<&PathBuf>,
    reference: &str,
    to: Option<&PathBuf>,
) -> Result<(), Error> {
    let args = Args {
        model: reference.to_owned(),
        priority: "normal".to_owned(),
        to: to.cloned(),
        ..Args::default()
    };
    let done = to_the_end(client, home, &args, true).await?;
    output::error_line(&format!("Downloaded and verified {}.", done.file));
    Ok(())
}

pub(super) async fn run(
    client: &mut Client,
    home: Option<&PathBuf>,
    args: &Args,
) -> Result<(), Error> {
    let done = to_the_end(client, home, args, false).await?;
    let sentence = format!("Downloaded and verified {}.", done.file);
    output::write_outcome(args.json, &json!(done), &sentence);
    match &args.tier {
        _ if args.only_media => Ok(()),
        Some(tier) => {
            choose_tier::wait_for_download(client, &done, tier).await;
            Ok(())
        }
        None => choose_tier::offer(client, &done, !args.json).await,
    }
}

/// Downloads even if the host quits first, such as one that another command started.
async fn to_the_end(
    client: &mut Client,
    home: Option<&PathBuf>,
    args: &Args,
    mut announced: bool,
) -> Result<DownloadStatus, Error> {
    // Installed before the download starts: from here on, Ctrl-C pauses.
    let mut interrupted = signal(SignalKind::interrupt()).map_err(no_signals)?;
    loop {
        let (id, display) = (OnceCell::new(), ProgressDisplay::new());
        let outcome = {
            let mut downloading = pin!(download(client, args, &mut announced, &id, &display));
            tokio::select! {
                outcome = &mut downloading => outcome,
                _ = interrupted.recv() => {
                    let named = poll_fn(|context| match downloading.as_mut().poll(context) {
                        Poll::Pending if id.get().is_some() => Poll::Ready(None),
                        outcome => outcome.map(Some),
                    });
                    match tokio::time::timeout(NAMED_WITHIN, named).await {
                        Ok(Some(outcome)) => outcome,
                        Ok(None) | Err(_) => pause(client, id.get()).await,
                    }
                }
            }
        };
        display.clear();
        match outcome {
            Err(error) if error.code == Code::ShuttingDown && !client.is_own() => {
                *client = tokio::select! {
                    next = client.next(home.cloned()) => next?,
                    _ = interrupted.recv() => return Err(Error::new(Code::Cancelled, "stopped")
                        .hint(RESUME_HINT)),
                };
                output::error_line("Tierbar quit; the download continues.");
            }
            outcome => break outcome,
        }
    }
}

async fn download(
    client: &Client,
    args: &Args,
    announced: &mut bool,
    id: &OnceCell<String>,
    display: &ProgressDisplay,
) -> Result<DownloadStatus, Error> {
    if !*announced && !args.only_media {
        // The download itself reports what is wrong with the model.
        let path = admin_path(&["models", "fit"], &[("model", &args.model)]);
        if let Ok(verdict) = client.get(&path).await {
            print_verdict(&read_answer(verdict)?);
        }
    }
    let body = json!({
        "reference": args.model,
        "priority": args.priority,
        "anyway": args.anyway,
        "include": args.include(),
        "tier": args.tier,
        "folder": args.folder()?,
    });
    let begun: DownloadStatus = read_answer(client.post("/tierbar/v1/downloads", &body).await?)?;
    id.get_or_init(|| begun.id.clone());
    if !std::mem::replace(announced, true) {
        if let Some((model, projector)) = begun.with_projector() {
            output::error_line(&format!(
                "{} + {} for images and sound (leave them out with --no-media)",
                file_size(model),
                file_size(projector)
            ));
        }
        if let (None, Some(bytes)) = (&args.to, begun.total_bytes)
            && let Some(free) = list::free_bytes(client).await
        {
            output::error_line(&left_free(bytes.saturating_sub(begun.received_bytes), free));
        }
        for warning in &begun.warnings {
            output::error_line(&format!("note: {warning}"));
        }
    }
    watch(client, begun, display).await
}

fn left_free(bytes: u64, free: u64) -> String {
    format!(
        "Needs {} of disk space and leaves {} free.",
        file_size(bytes),
        file_size(free.saturating_sub(bytes))
    )
}

fn print_verdict(verdict: &Verdict) {
    output::error_line(&verdict.summary);
    if let Some(warning) = &verdict.warning {
        output::error_line(warning);
    }
    if let Some(speed) = verdict.speed {
        let speed = output::speed_range(speed.low, speed.high);
        output::error_line(&format!("Expected speed: {speed}."));
    }
    if let Some(instead) = &verdict.instead {
        output::error_line(&format!("Better choice: {}", instead.reference));
    }
}

/// Waits until the download is done, or has stopped.
async fn watch(
    client: &Client,
    mut download: DownloadStatus,
    display: &ProgressDisplay,
) -> Result<DownloadStatus, Error> {
    let mut updates = Updates::open(client).await?;
    loop {
        display.show(&download);
        match download.state {
            DownloadState::Done => return Ok(download),
            DownloadState::Failed => {
                let reason = download.reason.unwrap_or("the download failed".to_owned());
                let hint = "the partial file is kept; run the same command to try again";
                return Err(Error::new(Code::Corrupt, reason).hint(hint));
            }
            DownloadState::Paused => {
                let paused = Error::new(Code::Paused, "the download is paused");
                return Err(paused.hint("run the same command to resume"));
            }
            _ => {}
        }
        let id = download.id;
        let downloads = updates.next().await?;
        let Some(now) = downloads.into_iter().find(|download| download.id == id) else {
            return Err(Error::new(Code::NotFound, "the download was canceled"));
        };
        download = now;
    }
}

async fn pause(client: &Client, id: Option<&String>) -> Result<DownloadStatus, Error> {
    let Some(id) = id else {
        let message = "stopped before the download started";
        return Err(Error::new(Code::Cancelled, message));
    };
    let path = admin_path(&["downloads", id], &[]);
    let paused: DownloadStatus =
        read_answer(client.patch(&path, &json!({"state": "paused"})).await?)?;
    if paused.state == DownloadState::Done {
        return Ok(paused);
    }
    Err(Error::new(Code::Cancelled, format!("paused: {}", progress(&paused))).hint(RESUME_HINT))
}

/// A progress bar on a terminal, lines elsewhere.
struct ProgressDisplay {
    bar: Option<ProgressBar>,
    last_line: std::cell::Cell<Option<(Instant, DownloadState)>>,
}

impl ProgressDisplay {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg}") {
            bar.set_style(style);
        }
        // A terminal may not be able to draw.
        let bar = (!bar.is_hidden()).then_some(bar);
        Self {
            bar,
            last_line: std::cell::Cell::new(None),
        }
    }

    fn show(&self, download: &DownloadStatus) {
        let text = progress(download);
        if let Some(bar) = &self.bar {
            if let Some(total) = download.total_bytes {
                bar.set_length(total);
            }
            bar.set_position(download.received_bytes);
            bar.set_message(text);
            return;
        }
        let last = self.last_line.get();
        if last.is_none_or(|(at, state)| at.elapsed() >= PERIOD || state != download.state) {
            self.last_line.set(Some((Instant::now(), download.state)));
            output::error_line(&text);
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
