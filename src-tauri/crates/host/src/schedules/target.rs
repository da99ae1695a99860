//! The target of a schedule's result: a file, written as a whole, or a webhook.

use crate::{own_data::OwnData, sources::expanded};
use axum::http::{HeaderMap, header};
use jiff::civil::Date;
use serde_json::{Value, json};
use std::path::Path;
use tierbar_core::{
    Code, Error,
    config::{ScheduleConfig, is_url, server_of},
};
use tierbar_fetch::{Remote, RemoteFailure, blocking};
use tierbar_nofollow::{Mode, OpenError, locate};
use tierbar_secrets::{Name, Secrets};

#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) date: Date,
    /// The brief or the summary.
    pub(super) text: String,
    /// What was read.
    pub(super) from: String,
    pub(super) answer: Value,
}

/// Delivers it; returns where, as the end of a sentence.
///
/// # Errors
/// `Storage` if the file cannot be written, `BadRequest` if it is Tierbar's own data, `Unreachable` if no server accepted it.
pub(super) async fn deliver(
    schedule: &ScheduleConfig,
    outcome: &Outcome,
    remote: &Remote,
    secrets: &Secrets,
) -> Result<String, Error> {
    if is_url(&schedule.to) {
        return post(schedule, outcome, remote, secrets).await;
    }
    let named = schedule
        .to
        .replace(ScheduleConfig::DATE, &outcome.date.to_string());
    let path = expanded(&named);
    let text = page(schedule, outcome);
    blocking("writing a schedule's result", move || {
        write(&path, &text)?;
        Ok(format!("wrote {}", path.display()))
    })
    .await
}

fn page(schedule: &ScheduleConfig, outcome: &Outcome) -> String {
    let Outcome {
        name,
        date,
        text,
        from,
        answer,
    } = outcome;
    let field = |name: &str| answer[name].as_str().unwrap_or("unknown").to_owned();
    let (tier, model) = (field("tier"), field("model"));
    let what = schedule.task.result();
    let header = answer["header"].as_str();
    let header = header.map_or_else(String::new, |header| format!("{header}\n"));
    let by = match (answer["fallback"] == true, answer["tier"].is_null()) {
        (true, true) => "by rule, because the model failed the test of summaries".to_owned(),
        (true, false) => format!("by rule, because {tier} ({model}) gave no usable answer"),
        (false, _) => format!("by {tier} ({model})"),
    };
    format!("{header}# {name}, {date}\n\n{text}\n\n---\n\n{what} of {from}, {by}\n")
}

/// Writes the whole file or nothing, readable only by its owner. No part of its path may be a symbolic link, nor may it be Tierbar's own
/// data.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let unwritable = |why: String| {
        let message = format!("{} cannot be written: {why}", path.display());
        Error::new(Code::Storage, message)
    };
    let not_opened = |error| match error {
        OpenError::System { error, .. } => unwritable(error.to_string()),
        error => unwritable(error.to_string()),
    };
    let root = Path::new("/");
    let (folder, name) = (path.parent(), path.file_name());
    let folder = folder.and_then(|folder| folder.strip_prefix(root).ok());
    let (Some(parts), Some(name)) = (folder, name) else {
        return Err(unwritable("this is not the path of a file".to_owned()));
    };
    let own = OwnData::now();
    let mut folder = locate(root).map_err(not_opened)?;
    for part in parts.iter().map(Path::new) {
        folder = folder.create_folder(part, Mode::RWXU).map_err(not_opened)?;
        // Before anything is created in it.
        own.refuse(path, &folder)?;
    }
    if let Ok(there) = folder.inside(Path::new(name)) {
        own.refuse(path, &there)?;
        if there.about().is_ok_and(|there| !there.is_file) {
            let message = format!(
                "{} is not a file that Tierbar may overwrite",
                path.display()
            );
            return Err(Error::new(Code::Storage, message));
        }
    }
    let written = folder.replace(name, text.as_bytes(), Mode::RUSR | Mode::WUSR);
    written.map_err(|error| unwritable(error.to_string()))
}

async fn post(
    schedule: &ScheduleConfig,
    outcome: &Outcome,
    remote: &Remote,
    secrets: &Secrets,
) -> Result<String, Error> {
    let url = &schedule.to;
    // A webhook's path is often its secret.
    let server = server_of(url).map_or("", |(_, server)| server).to_owned();
    let name = Name::of_server(url);
    let secrets = secrets.clone();
    let key = blocking("the webhook's key", move || secrets.get(&name)).await?;
    let body = json!({
        "schedule": outcome.name,
        "date": outcome.date.to_string(),
        "task": schedule.task.as_str(),
        "text": outcome.text,
        "from": outcome.from,
        "answer": outcome.answer,
    });
    // The path is the URL's own, to its last slash.
    let slash = if url.ends_with('/') { "/" } else { "" };
    let failed = |why| Error::new(Code::Unreachable, format!("the webhook at {server} {why}"));
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let key = Remote::key("Bearer", &key).map_err(failed)?;
        headers.insert(header::AUTHORIZATION, key);
    }
    let answer = remote
        .post(url, slash, headers, body.to_string().into_bytes())
        .await
        .map_err(|failure| match failure {
            RemoteFailure::Server(why) => failed(why),
            RemoteFailure::Lack(lack) => lack,
        })?;
    if answer.status().is_success() {
        return Ok(format!("posted to {server}"));
    }
    let message = format!("the webhook at {server} returned {}", answer.status());
    Err(Error::new(Code::Unreachable, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        own_data::tests::{data_folder_at, hard_link_to_data},
        sources::tests::tempdir,
    };
    use std::{
        ffi::OsStr,
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };
    use tierbar_skip::race::{ALL, Found, race};

    #[test]
    fn a_result_file_is_private_and_replaced_as_a_whole() {
        let folder = tempdir();
        let path = folder.path().join("briefs/of/day.md");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "no draft is left");
        let error = write(path.parent().unwrap(), "x").unwrap_err();
        assert!(error.message.contains("may overwrite"), "{error}");
        let error = write(&path.join("x.md"), "x").unwrap_err();
        assert_eq!(error.code, Code::Storage);
        let (elsewhere, link) = (folder.path().join("elsewhere"), folder.path().join("link"));
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, &link).unwrap();
        let error = write(&link.join("day.md"), "x").unwrap_err();
        assert!(error.message.contains("symbolic link"), "{error}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn no_result_is_written_to_tierbars_own_data() {
        let folder = tempdir();
        let path = folder.path();
        fs::create_dir(path.join("logs")).unwrap();
        for name in ["tierbar.db", "token"] {
            fs::write(path.join(name), "before").unwrap();
        }
        for name in ["token", "config.md", "logs/day.md", "new/deep/day.md"] {
            let error = write(&path.join(name), "x").unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{name}");
            assert!(error.message.contains("own data"), "{name}: {error}");
        }
        assert_eq!(fs::read_to_string(path.join("token")).unwrap(), "before");
        assert_eq!(fs::read_dir(path.join("logs")).unwrap().count(), 0);
        assert!(!path.join("new").exists());
    }

    #[test]
    fn no_result_takes_the_place_of_a_hard_link_to_that_data() {
        let folder = tempdir();
        let path = folder.path().join("day.md");
        let _data = hard_link_to_data(&path);
        let error = write(&path, "x").unwrap_err();
        assert!(error.message.contains("own data"), "{error}");
    }

    #[test]
    fn a_target_whose_name_leads_to_tierbars_data_is_not_left() {
        let root = tempdir();
        let (out, private) = (root.path().join("out"), root.path().join("private"));
        fs::create_dir(&out).unwrap();
        data_folder_at(&private);
        let data = locate(&private).unwrap();
        let leaks = |name: &str| data.about_entry(OsStr::new(name)).is_ok();
        let attempt = |name: &str, top: &str| match write(&out.join(name), "x") {
            _ if leaks(top) => Found::Foreign,
            Ok(()) => Found::Own,
            Err(_) => Found::Refused,
        };
        race(
            &ALL,
            &out,
            &private,
            &mut [&mut || attempt("day.md", "day.md"), &mut || {
                attempt("new/deep/day.md", "new")
            }],
        );
    }
}
