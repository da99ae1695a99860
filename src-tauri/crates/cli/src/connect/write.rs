//! `tierbar connect CLIENT --write`.

use super::{
    Args, confirm,
    edit::{self, Edited},
    files::{Record, Records, Target, diff},
    text,
};
use crate::{
    client::{Client as Host, admin, read},
    output,
};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{
    Code, Error,
    connect::{Client, ClientServer, ClientSettings, Form, Place, SOME_KEY, render},
};

pub(super) fn has_file(client: &Client) -> bool {
    paths(client).is_some()
}

fn paths(client: &Client) -> Option<&'static [&'static str]> {
    client
        .settings
        .iter()
        .find_map(|setting| match setting.place {
            Place::File { paths, .. } => Some(paths),
            _ => None,
        })
}

fn fragment(settings: &ClientSettings) -> Option<(Form, &str)> {
    let mut files = settings.settings.iter();
    files.find_map(|snippet| Some((snippet.form?, snippet.text.as_str())))
}

pub(super) async fn run(
    home: Option<PathBuf>,
    client: &'static Client,
    server: &ClientServer,
    args: &Args,
) -> Result<(), Error> {
    let with_key = |key: Option<&str>| render(client, server, args.tier.as_deref(), key);
    let settings = with_key(None);
    let (Some(paths), Some((form, shown))) = (paths(client), fragment(&settings)) else {
        let message = format!("{} has no file that Tierbar can change", client.name);
        let hint = format!("enter what `tierbar connect {}` shows", client.id);
        return Err(Error::new(Code::BadRequest, message).hint(hint));
    };
    let records = Records::new(home.as_ref(), client);
    let last = records.read()?;
    let target = match &last {
        Some(last) => Target::read(last.path.clone())?,
        None => Target::find(client, paths)?,
    };
    let base = base(&target, last.as_ref())?;
    let edit = |fragment: &str| -> Result<Edited, Error> {
        edit::apply(form, base.as_deref().unwrap_or_default(), fragment).map_err(|why| {
            // For people; a script reads the error.
            if !args.json {
                output::write(&text(client, &settings));
            }
            let message = format!("{} was not changed: {why}", target.path.display());
            Error::new(Code::BadRequest, message).hint("enter the settings by hand")
        })
    };
    let before = target.text.as_deref().unwrap_or_default();
    let preview = edit(shown)?;
    if preview.text == before {
        report(args, client, &target, "", None);
        return Ok(());
    }
    let changes = diff(&target.path, before, &preview.text);
    if !args.json {
        for warning in &settings.warnings {
            output::error_line(&format!("warning: {warning}"));
        }
        output::write(&changes);
    }
    let needs_key = shown.contains(SOME_KEY);
    if needs_key && !args.json {
        output::error_line(&format!(
            "An API key named {} is created and written in the place of {SOME_KEY}.",
            client.id
        ));
    }
    confirm(args, &format!("\nChange {}?", target.path.display()))?;
    let mut key = last.and_then(|last| last.key);
    let edited = if needs_key {
        let made = create_key(home.as_ref(), client, key.is_some()).await?;
        key = Some(client.id.to_owned());
        let settings = with_key(Some(&made));
        edit(fragment(&settings).map_or(shown, |(_, text)| text))?
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
    let backup = base.is_some().then(|| records.backup());
    report(args, client, &target, &changes, backup);
    if !args.json {
        for note in &settings.notes {
            output::line(note);
        }
    }
    Ok(())
}

/// Returns the file's text without what was written last.
fn base(target: &Target, last: Option<&Record>) -> Result<Option<String>, Error> {
    let (Some(last), Some(text)) = (last, &target.text) else {
        return Ok(target.text.clone());
    };
    if *text == last.after {
        return Ok(last.before.clone());
    }
    let reverted = edit::revert(last.form, text, &last.changes).map_err(|why| {
        let message = format!("{} was not changed: {why}", target.path.display());
        Error::new(Code::BadRequest, message).hint("correct the file first")
    })?;
    Ok(Some(reverted.text))
}

/// Creates the API key of a client; one that was created before is replaced.
async fn create_key(
    home: Option<&PathBuf>,
    client: &Client,
    exists: bool,
) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct NewKey {
        key: String,
    }
    let host = Host::running(home)?;
    if exists {
        match host.delete(&admin(&["keys", client.id], &[])).await {
            Err(error) if error.code != Code::NotFound => return Err(error),
            _ => {}
        }
    }
    let body = json!({"name": client.id});
    let answer = host.post(&admin(&["keys"], &[]), &body).await;
    let NewKey { key } = read(answer.map_err(|error| {
        error.hint(format!(
            "if nothing uses the key {0}, revoke it: tierbar key revoke {0}",
            client.id
        ))
    })?)?;
    Ok(key)
}

fn report(args: &Args, client: &Client, target: &Target, changes: &str, backup: Option<PathBuf>) {
    let path = target.path.display().to_string();
    if args.json {
        let changed = !changes.is_empty();
        let report = json!({
            "client": client.id, "path": path, "changed": changed, "diff": changes, "backup": backup,
        });
        output::line(&report.to_string());
        return;
    }
    if changes.is_empty() {
        output::line(&format!("{path} has these settings already."));
        return;
    }
    output::line(&format!("\n{} uses Tierbar now.", client.name));
    if let Some(backup) = backup {
        output::line(&format!("The file before is in {}.", backup.display()));
    }
    output::line(&format!("To undo it: tierbar connect {} --undo", client.id));
}
