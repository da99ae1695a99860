//! `tierbar mcp`: Tierbar as an MCP server, for programs that start it and speak with it over stdin and stdout.

use crate::{client::Client, output};
use serde_json::Value;
use std::{
    io::{IsTerminal, stdin},
    path::PathBuf,
};
use tierbar_core::Error;
use tierbar_mcp_server::{Api, serve_stdio};

pub(crate) async fn run(home: Option<PathBuf>) -> Result<(), Error> {
    if stdin().is_terminal() {
        output::error_line(
            "MCP clients start this command and write to it. To add it to one, run `tierbar connect claude-desktop`. Press Control-D \
             to end it.",
        );
    }
    serve_stdio(HostApi { home }).await
}

/// The host that runs while a tool is called: it may start, or start again, after the client has.
#[derive(Debug)]
struct HostApi {
    home: Option<PathBuf>,
}

impl Api for HostApi {
    async fn send(&self, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let client = Client::running(self.home.as_ref())?;
        match body {
            Some(body) => client.post(path, body).await,
            None => client.get(path).await,
        }
    }
}
