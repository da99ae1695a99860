//! Questions on the terminal.

use crate::output;
use std::{
    fmt::Display,
    io::{self, IsTerminal, stdin},
};
use tierbar_core::{Code, Error};

/// Asks for a yes before something is changed, unless it is given; `hint` says how.
///
/// # Errors
/// `Forbidden` after a no, or without a terminal to ask on; `Cancelled` after Ctrl-C.
pub(crate) async fn confirm(
    yes: bool,
    question: &str,
    hint: &str,
    as_json: bool,
) -> Result<(), Error> {
    if yes {
        return Ok(());
    }
    let why = if as_json {
        "--json asks no questions"
    } else {
        "there is no terminal to ask on"
    };
    if as_json || !stdin().is_terminal() {
        let message = format!("nothing was changed: this needs a yes, and {why}");
        return Err(Error::new(Code::Forbidden, message).hint(hint));
    }
    match ask(&format!("{question} [y/N] ")).await?.as_deref() {
        Some("y" | "Y" | "yes" | "Yes") => Ok(()),
        _ => Err(Error::new(Code::Forbidden, "nothing was changed")),
    }
}

/// Returns whether a question can be asked and is seen.
pub(crate) fn can_ask() -> bool {
    stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a question and returns the answer without the space around it; `None` at the end of the input.
///
/// # Errors
/// `Cancelled` after Ctrl-C.
pub(crate) async fn ask(question: &str) -> Result<Option<String>, Error> {
    output::write_prompt(question);
    let read = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        let read = stdin().read_line(&mut answer);
        matches!(read, Ok(1..)).then(|| answer.trim().to_owned())
    });
    tokio::select! {
        answer = read => Ok(answer.ok().flatten()),
        _ = tokio::signal::ctrl_c() => {
            output::error_line("");
            Err(Error::new(Code::Cancelled, "interrupted"))
        }
    }
}

pub(crate) fn no_terminal(error: impl Display) -> Error {
    let message = format!("the terminal cannot be read: {error}");
    Error::new(Code::Internal, message)
}

pub(crate) fn no_signals(error: io::Error) -> Error {
    Error::new(Code::Internal, format!("Ctrl-C cannot be handled: {error}"))
}
