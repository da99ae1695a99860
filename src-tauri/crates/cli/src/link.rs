//! `tierbar link`.

use crate::output;
use std::path::PathBuf;
use tierbar_core::{Code, Error};

/// Prints only the link, so that `open "$(tierbar link)"` works.
pub(crate) async fn run(home: Option<PathBuf>) -> Result<(), Error> {
    let running = tierbar_host::running(home.as_deref()).ok_or_else(|| {
        Error::new(Code::NotFound, "Tierbar is not running")
            .hint("open the app or run `tierbar serve`")
    })?;
    output::line(&running.sign_in_link().await?);
    Ok(())
}
