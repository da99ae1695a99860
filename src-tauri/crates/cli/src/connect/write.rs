//! `tierbar connect CLIENT --write`.

use super::{
    Args, by_hand, confirm,
    edit::{self, EditResult},
    files::{Record, Records, Target, diff},
    render_notes, render_snippets,
    undo::revoke_key,
};
use crate::{
    client::{Client as Host, read_field},
    output,
};
use serde_json::json;
use std::path::PathBuf;
use tierbar_connect::{Client, ClientServer, ClientSettings, Form, SOME_KEY, render};
use tierbar_core::{Error, bad_request};

fn fragment(settings: &ClientSettings) -> Option<(Form, &str)> {
    let mut snippets = settings.settings.iter();
    snippets.find_map(|snippet| Some((snippet.form?, snippet.text.as_str())))
}

pub(super) async fn run(
    home: Option<PathBuf>,
    client: &'static Client,
    server: &ClientServer,
    args: &Args,
) -> Result<(), Error> {
    let with_key = |key: Option<&str>| render(client, server, args.tier.as_deref(), key);
    let settings = with_key(None);
    let (Some(paths), Some((form, shown))) = (client.file(), fragment(&settings)) else {
        let message = format!("{} has no file that Tierbar can change", client.name);
        let hint = format!("enter what `tierbar connect {}` shows", client.id);
        return Err(bad_request(message).hint(hint));
    };
    let records = Records::new(home.as_ref(), client);
    let last = records.read()?;
    let target = match &last {
        Some(last) => Target::read(last.path.clone())?,
        None => Target::find(client, paths)?,
    };
    let base = match &last {
        Some(last) => last.restoration(&target)?.text,
        None => target.text.clone(),
    };
    let edit = |fragment: &str| -> Result<EditResult, Error> {
        edit::apply(form, base.as_deref().unwrap_or_default(), fragment).map_err(|why| {
            // For people; a script reads the error.
            if !args.json {
                output::write(&by_hand(&settings));
            }
            let message = format!("{} was not changed: {why}", target.path.display());
            bad_request(message).hint("enter the settings by hand")
        })
    };
    let before = target.text.as_deref().unwrap_or_default();
    let preview = edit(shown)?;
    // Some clients keep the key elsewhere than in their file.
    let needs_key = server.key_required && client.uses_models();
    let is_key_in_file = shown.contains(SOME_KEY);
    if preview.text == before {
        let had_key = last.is_some_and(|last| last.key.is_some());
        report(args, client, &target, &WriteReport::default());
        if needs_key && !had_key && !args.json {
            output::write(&render_other_places(&settings));
        }
        return Ok(());
    }
    let changes = diff(&target.path, before, &preview.text);
    if !args.json {
        for warning in &settings.warnings {
            output::error_line(&format!("warning: {warning}"));
        }
        output::write(&changes);
    }
    if needs_key && !args.json {
        let goes = match is_key_in_file {
            true => format!("written in the place of {SOME_KEY}"),
            false => "shown once the file is changed, with where to enter it".to_owned(),
        };
        output::error_line(&format!(
            "An API key named {} is created and {goes}.",
            client.id
        ));
    }
    confirm(args, &format!("\nChange {}?", target.path.display())).await?;
    target.check_unchanged()?;
    let mut key = last.and_then(|last| last.key);
    let mut keyed = None;
    let edited = if needs_key {
        let made = create_key(home.as_ref(), client, key.is_some()).await?;
        key = Some(client.id.to_owned());
        let keyed = keyed.insert(with_key(Some(&made)));
        edit(fragment(keyed).map_or(shown, |(_, text)| text))?
    } else {
        preview
    };
    // First, so that whatever happens then can be undone.
    records.write(&Record {
        path: target.path.clone(),
        form,
        before: base.clone(),
        after: edited.text.clone(),
        changes: edited.changes,
        key,
    })?;
    target.write(Some(&edited.text))?;
    let written = WriteReport {
        changes: &changes,
        backup: base.is_some().then(|| records.backup()),
        // A key that the file does not have is shown here or never.
        to_enter: keyed.as_ref().filter(|_| !is_key_in_file),
    };
    report(args, client, &target, &written);
    if !args.json {
        output::write(&match written.to_enter {
            Some(keyed) => render_other_places(keyed),
            None => render_notes(&keyed.as_ref().unwrap_or(&settings).notes),
        });
    }
    Ok(())
}

/// Returns what is entered elsewhere than in the file.
fn render_other_places(settings: &ClientSettings) -> String {
    let elsewhere = settings.settings.iter().filter(|one| one.form.is_none());
    let mut text = render_snippets(elsewhere);
    if !text.is_empty() {
        text += "\n";
    }
    text + &render_notes(&settings.notes)
}

/// Creates the API key of a client; one that was created before is replaced.
async fn create_key(
    home: Option<&PathBuf>,
    client: &Client,
    exists: bool,
) -> Result<String, Error> {
    let host = Host::running(home)?;
    if exists {
        revoke_key(&host, client.id).await?;
    }
    let body = json!({"name": client.id});
    let answer = host.post("/tierbar/v1/keys", &body).await;
    let answer = answer.map_err(|error| {
        error.hint(format!(
            "if nothing uses the key {0}, revoke it: tierbar key revoke {0}",
            client.id
        ))
    })?;
    read_field(answer, "key")
}

/// What has become of a file.
#[derive(Debug, Default)]
struct WriteReport<'a> {
    /// Empty if the file had the settings already.
    changes: &'a str,
    backup: Option<PathBuf>,
    /// The settings with a new API key that is not in the file.
    to_enter: Option<&'a ClientSettings>,
}

fn report(args: &Args, client: &Client, target: &Target, written: &WriteReport<'_>) {
    let path = target.path.display().to_string();
    let changed = !written.changes.is_empty();
    if args.json {
        let to_enter = written.to_enter.map(|settings| {
            let elsewhere = settings.settings.iter().filter(|one| one.form.is_none());
            json!({"settings": elsewhere.collect::<Vec<_>>(), "notes": settings.notes})
        });
        let report = json!({
            "client": client.id, "path": path, "changed": changed, "diff": written.changes, "backup": written.backup,
            "to_enter": to_enter,
        });
        output::write_json(&report);
        return;
    }
    if !changed {
        output::write_line(&format!("{path} already has these settings."));
        return;
    }
    match written.to_enter {
        Some(_) => output::write_line(&format!(
            "\n{} uses Tierbar once it has the API key below, which is shown only now.",
            client.name
        )),
        None => output::write_line(&format!("\n{} uses Tierbar now.", client.name)),
    }
    if let Some(backup) = &written.backup {
        output::write_line(&format!("The previous file is in {}.", backup.display()));
    }
    output::write_line(&format!("To undo it: tierbar connect {} --undo", client.id));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_connect::CLIENTS;

    #[test]
    fn a_key_that_a_file_does_not_take_is_shown_with_where_it_goes() {
        let server = ClientServer {
            url: "http://127.0.0.1:11435".to_owned(),
            key_required: true,
            tiers: Vec::new(),
            embedder: None,
            mcp_command: Vec::new(),
        };
        let takes_key = |client: &&Client| client.file().is_some() && client.uses_models();
        for client in CLIENTS.iter().filter(takes_key) {
            let settings = render(client, &server, None, Some("tb-made"));
            let (_, text) = fragment(&settings).unwrap();
            let is_shown =
                text.contains("tb-made") || render_other_places(&settings).contains("tb-made");
            assert!(is_shown, "{}", client.id);
        }
        let codex = CLIENTS.iter().find(|client| client.id == "codex").unwrap();
        let shown = render_other_places(&render(codex, &server, None, Some("tb-made")));
        assert!(
            shown.contains("  export TIERBAR_API_KEY=tb-made\n"),
            "{shown}"
        );
    }
}
