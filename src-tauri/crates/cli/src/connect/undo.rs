//! `tierbar connect CLIENT --undo`.

use super::{
    Args, confirm,
    files::{Records, Restoration, Target, diff},
};
use crate::{
    client::{Client as Host, admin_path},
    output,
};
use serde_json::json;
use std::path::PathBuf;
use tierbar_connect::Client;
use tierbar_core::{Code, Error};

pub(super) async fn run(
    home: Option<PathBuf>,
    client: &'static Client,
    args: &Args,
) -> Result<(), Error> {
    let records = Records::new(home.as_ref(), client);
    let Some(record) = records.read()? else {
        let message = format!("Tierbar has written nothing into a file of {}", client.name);
        let hint = format!(
            "settings that were entered by hand are listed by `tierbar connect {}`",
            client.id
        );
        return Err(Error::new(Code::NotFound, message).hint(hint));
    };
    let target = Target::read(record.path.clone())?;
    let Restoration { text, left } = record.restoration(&target)?;
    let path = target.path.display().to_string();
    let before = target.text.as_deref().unwrap_or_default();
    let changes = diff(&target.path, before, text.as_deref().unwrap_or_default());
    if !args.json {
        output::write(&changes);
        for part in &left {
            output::error_line(&format!(
                "{part} in {path} has been changed since, and stays: remove it by hand if you want to"
            ));
        }
    }
    if text != target.text {
        confirm(args, &format!("\nChange {path}?")).await?;
        target.check_unchanged()?;
        target.write(text.as_deref())?;
    }
    let revoked = match &record.key {
        Some(key) => Some(revoke(home.as_ref(), key).await),
        None => None,
    };
    // To correct the rest by hand, the user may need the original file.
    let backup = (!left.is_empty() && record.before.is_some()).then(|| records.backup());
    match backup {
        Some(_) => records.forget()?,
        None => records.remove()?,
    }
    if args.json {
        let error = revoked.as_ref().and_then(|revoked| revoked.as_ref().err());
        let report = json!({
            "client": client.id, "path": path, "changed": text != target.text, "diff": changes, "left": left,
            "backup": backup, "revoked": revoked.as_ref().map(Result::is_ok),
            "revoke_error": error.map(|error| &error.message),
        });
        output::write_json(&report);
        return Ok(());
    }
    let sentence = match (&target.text, &text) {
        (None, _) => format!("{path} is gone, so there is nothing to undo in it."),
        (Some(_), None) => format!("{path} is removed again."),
        _ if left.is_empty() => format!("{path} is as it was without Tierbar."),
        _ => format!("Removed the rest of Tierbar's settings from {path}."),
    };
    output::write_line(&sentence);
    if let Some(backup) = backup {
        let backup = backup.display();
        output::write_line(&format!(
            "The file before Tierbar changed it is in {backup}."
        ));
    }
    if let Some(Err(error)) = revoked {
        output::error_line(&format!("its API key was not revoked: {}", error.message));
        output::error_line(&format!("  run `tierbar key revoke {}`", client.id));
    }
    Ok(())
}

async fn revoke(home: Option<&PathBuf>, key: &str) -> Result<(), Error> {
    revoke_key(&Host::running(home)?, key).await
}

/// Revokes an API key, if it is there.
pub(super) async fn revoke_key(host: &Host, key: &str) -> Result<(), Error> {
    match host.delete(&admin_path(&["keys", key], &[])).await {
        Err(error) if error.code != Code::NotFound => Err(error),
        _ => Ok(()),
    }
}
