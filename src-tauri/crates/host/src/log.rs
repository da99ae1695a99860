//! Where the program's own messages go.

use crate::folder::{Folder, data_folder};
use std::{io::IsTerminal, path::PathBuf};
use tierbar_core::{Code, Error};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::{EnvFilter, layer::SubscriberExt, util::SubscriberInitExt};

/// The default filter, without messages that report only normal operation.
const USUAL: &str = "info,rusqlite_migration=warn";
/// The number of files kept: a week.
const KEPT: usize = 7;

/// Writes messages to stderr and to `logs/tierbar.DATE.log` in the data folder `home` (the usual one if `None`).
/// `RUST_LOG` chooses which; without it, `info` and worse. Call it once, from `main`.
///
/// # Errors
/// `Storage` if the file cannot be made. Messages then go to stderr alone.
pub fn log_to_folder(home: Option<PathBuf>) -> Result<(), Error> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(USUAL));
    let to_stderr = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let (to_file, outcome) = match file(home) {
        Ok(file) => {
            let layer = tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_writer(std::sync::Mutex::new(file));
            (Some(layer), Ok(()))
        }
        Err(error) => (None, Err(error)),
    };
    let log = tracing_subscriber::registry()
        .with(filter)
        .with(to_stderr)
        .with(to_file);
    log.try_init()
        .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
    outcome
}

fn file(home: Option<PathBuf>) -> Result<RollingFileAppender, Error> {
    let logs = Folder::open(Some(home.unwrap_or_else(data_folder)))?.logs();
    RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("tierbar")
        .filename_suffix("log")
        .max_log_files(KEPT)
        .build(&logs)
        .map_err(|error| {
            Error::new(
                Code::Storage,
                format!("cannot log to {}: {error}", logs.display()),
            )
        })
}
