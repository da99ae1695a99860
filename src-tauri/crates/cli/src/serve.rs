//! `tierbar serve`: runs the host without a window.

use crate::{confirm::no_signals, output};
use serde_json::json;
use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process,
};
use tierbar_core::{Code, Error};
use tierbar_host::{Host, HostKind, HostOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to listen on; port 0 picks a free one [default: the configured address]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Print one line of JSON when ready: {"ready":true,"url":…,"token_file":…}
    #[arg(long)]
    json: bool,
    /// If another Tierbar is using the data folder, wait until it ends
    #[arg(long)]
    wait: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    tierbar_host::log_to_folder(home.clone())?;
    // Installed before the host starts, so that a signal does not kill it halfway.
    let mut signals = Signals::new()?;
    let options = HostOptions {
        home,
        listen: args.listen,
        worker: None,
        kind: HostKind::Serve,
    };
    let host = loop {
        match Host::start(options.clone()).await {
            Err(error) if args.wait && error.code == Code::AlreadyRunning => {
                if !args.json {
                    output::write_line(&format!("Waiting: {error}"));
                }
                tokio::select! {
                    ended = tierbar_host::wait_until_released(options.home.clone()) => ended?,
                    () = signals.next() => return Ok(()),
                }
            }
            started => break started?,
        }
    };
    for notice in host.config_notices() {
        output::error_line(&format!("note: {notice}"));
    }
    if args.json {
        let mut ready = json!({"ready": true, "url": host.url(), "token_file": host.token_file(), "pid": process::id()});
        if let Some(fingerprint) = host.fingerprint() {
            ready["fingerprint"] = fingerprint.into();
        }
        output::write_json(&ready);
    } else {
        let url = host.url();
        // A service's output is kept in a log, which is no place for a code.
        let browser = match io::stdout().is_terminal() {
            true => host.running().sign_in_link().await.ok(),
            false => None,
        };
        let browser = match browser {
            Some(link) => format!(
                "{link}\n                    signs in once, within 10 minutes; for a new link: tierbar link"
            ),
            None => format!("{url}   (to sign in, run `tierbar link`)"),
        };
        let others = host.fingerprint().map_or_else(String::new, |fingerprint| {
            format!(
                "  Other machines    use HTTPS; the certificate's SHA-256 fingerprint is\n                    {fingerprint}\n"
            )
        });
        output::write_line(&format!(
            "Tierbar is serving on {url}\n  Browser           {browser}\n  OpenAI clients    {url}/v1   (model: \"auto\" or a tier)\n{others}\
             Press Ctrl-C to stop."
        ));
    }
    signals.next().await;
    tokio::select! {
        () = host.shutdown() => Ok(()),
        // A second signal ends the process at once.
        () = signals.next() => process::exit(130),
    }
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(no_signals);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
