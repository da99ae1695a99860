//! `tierbar connect`: the settings with which other programs use Tierbar, printed or written into their files.

mod edit;
mod files;
mod names;
mod undo;
mod write;

use crate::{
    client::{Client as Host, read_field},
    output,
};
use serde_json::json;
use std::path::PathBuf;
use tierbar_connect::{
    CLIENTS, Client, ClientServer, ClientSettings, Snippet, SnippetKind, find, render,
};
use tierbar_core::{Code, Error, bad_request, nearest::nearest};
use tierbar_host::clients;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// App or package, such as claude-code [default: list them]
    client: Option<String>,
    /// Write the settings into the app's configuration file
    #[arg(long, requires = "client", conflicts_with_all = ["undo", "env"])]
    write: bool,
    /// Undo --write
    #[arg(long, requires = "client", conflicts_with = "env")]
    undo: bool,
    /// Print only the lines for a shell, as in: eval "$(tierbar connect claude-code --env)"
    #[arg(long, requires = "client", conflicts_with = "json")]
    env: bool,
    /// Tier to use [default: the one that suits the app]
    #[arg(
        long,
        value_name = "NAME",
        requires = "client",
        conflicts_with = "undo"
    )]
    tier: Option<String>,
    /// Change the file without asking
    #[arg(long, short)]
    yes: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let Some(id) = &args.client else {
        return list(args.json);
    };
    let client = find(id).ok_or_else(|| unknown(id))?;
    if args.undo {
        return undo::run(home, client, &args).await;
    }
    if args.tier.is_some() && !client.uses_models() {
        let message = format!("{} uses Tierbar's tools and no tier", client.name);
        return Err(bad_request(message).hint("leave out --tier"));
    }
    let server = server(home.as_ref()).await?;
    let known = match &args.tier {
        Some(name) => names::check(home.as_ref(), &server, client, name).await,
        None => Ok(()),
    };
    if args.write {
        known?;
        return write::run(home, client, &server, &args).await;
    }
    let mut settings = ClientSettings {
        found: client.is_found(&clients::installed_clients()),
        ..render(client, &server, args.tier.as_deref(), None)
    };
    if let Err(unknown) = known {
        settings.warnings.push(unknown.to_text(": "));
    }
    if args.json {
        output::write_json(&json!(settings));
    } else if args.env {
        output::write(&environment(&settings)?);
        // Stdout is for the shell.
        for warning in &settings.warnings {
            output::error_line(&format!("warning: {warning}"));
        }
    } else {
        output::write(&render_settings(client, &settings));
    }
    Ok(())
}

fn unknown(id: &str) -> Error {
    let named = CLIENTS
        .iter()
        .find(|client| client.id.contains(id) || client.name.eq_ignore_ascii_case(id));
    let near = named.map(|client| client.id);
    let hint = match near.or_else(|| nearest(id, CLIENTS.iter().map(|client| client.id))) {
        Some(near) => format!("did you mean {near}? `tierbar connect` lists all"),
        None => {
            "`tierbar connect` lists all; any other OpenAI client takes the settings of `openai`"
                .to_owned()
        }
    };
    Error::new(Code::NotFound, format!("no client is called \"{id}\"")).hint(hint)
}

/// Returns the running server, or else the configured one.
async fn server(home: Option<&PathBuf>) -> Result<ClientServer, Error> {
    let Ok(host) = Host::running(home) else {
        let server = clients::configured_server(home.map(PathBuf::as_path))?;
        output::error_line("Tierbar is not running; these are the settings of its configuration.");
        return Ok(server);
    };
    read_field(host.get("/tierbar/v1/connect").await?, "server")
}

fn list(as_json: bool) -> Result<(), Error> {
    let installed = clients::installed_clients();
    if as_json {
        let rows = CLIENTS.iter().map(|client| {
            json!({
                "id": client.id, "name": client.name, "about": client.about, "found": client.is_found(&installed),
                "writes": client.file().is_some(),
            })
        });
        output::write_json(&rows.collect());
        return Ok(());
    }
    let mut text = String::new();
    for client in CLIENTS {
        let found = match client.is_found(&installed) {
            Some(true) => "found",
            Some(false) => "",
            None => "package",
        };
        text += &format!(
            "{:<18} {found:<8} {:<34} {}\n",
            client.id, client.name, client.about
        );
    }
    text += "\nTo see an app's settings: tierbar connect NAME\n";
    let written = CLIENTS.iter().filter(|client| client.file().is_some());
    let written: Vec<_> = written.map(|client| client.id).collect();
    text += &format!(
        "To preview and write them: tierbar connect NAME --write\n  ({})\n",
        written.join(", ")
    );
    output::write(&text);
    Ok(())
}

fn render_settings(client: &Client, settings: &ClientSettings) -> String {
    let mut text = by_hand(settings);
    if client.file().is_some() {
        text += &format!(
            "\nTo write the file: tierbar connect {} --write\n",
            client.id
        );
    }
    text
}

/// Returns what to enter where.
fn by_hand(settings: &ClientSettings) -> String {
    let (name, about, reason) = (&settings.name, &settings.about, &settings.reason);
    let mut text = match &settings.model {
        Some(model) => format!("{name}: {about}, with {model} ({reason}).\n"),
        None => format!("{name}: {about}.\n"),
    };
    for warning in &settings.warnings {
        text += &format!("Warning: {warning}.\n");
    }
    text += &render_snippets(&settings.settings);
    if !settings.notes.is_empty() {
        text += "\n";
    }
    text + &render_notes(&settings.notes)
}

fn render_snippets<'a>(snippets: impl IntoIterator<Item = &'a Snippet>) -> String {
    let mut text = String::new();
    for snippet in snippets {
        text += &format!("\nIn {}:\n\n", snippet.place);
        for line in snippet.text.lines() {
            text += &format!("  {line}\n");
        }
    }
    text
}

fn render_notes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("{note}\n")).collect()
}

fn environment(settings: &ClientSettings) -> Result<String, Error> {
    let snippets = settings.settings.iter();
    let lines: String = snippets
        .filter(|snippet| snippet.kind == SnippetKind::Environment)
        .map(|snippet| format!("{}\n", snippet.text))
        .collect();
    if lines.is_empty() {
        let message = format!("{} has no settings in the environment", settings.name);
        let hint = "leave out --env to see its settings";
        return Err(bad_request(message).hint(hint));
    }
    Ok(lines)
}

async fn confirm(args: &Args, question: &str) -> Result<(), Error> {
    let hint = "add --yes to change the file";
    crate::confirm::confirm(args.yes, question, hint, args.json).await
}

#[cfg(test)]
mod tests;
