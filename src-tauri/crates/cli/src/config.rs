//! `tierbar config`: reads and changes the configuration, key by key.

use crate::{
    client::{Client, with_host},
    models, output,
};
use serde_json::{Map, Value, json};
use std::{
    io::{IsTerminal, stdin},
    path::{Path, PathBuf},
    time::Duration,
};
use tierbar_core::{
    Code, Error, bad_request,
    config::keys::{Key, NAME, keys},
    fit::LibraryModel,
    nearest::suggest,
};
use tierbar_host::API_DESCRIPTION;

const PATH: &str = "/tierbar/v1/config";
/// How long a running host may take to read an edited file.
const READ_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List keys with their values and what they do
    List {
        /// Only this key, or the keys of this table, such as policy
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// Print the keys as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the value of a key
    Get {
        /// Key such as policy.home, or a table such as tiers.fast
        #[arg(value_name = "KEY")]
        key: String,
        /// Print the value as JSON
        #[arg(long)]
        json: bool,
    },
    /// Change a key in config.toml; comments stay
    Set {
        /// Key such as policy.home
        #[arg(value_name = "KEY")]
        key: String,
        /// Value; several of a list are separated by commas
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
        /// Print the new value as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a key from config.toml, so that its default applies
    Unset {
        /// Key such as policy.home
        #[arg(value_name = "KEY")]
        key: String,
        /// Print the value that applies now as JSON
        #[arg(long)]
        json: bool,
    },
    /// Open config.toml in $VISUAL or $EDITOR, and report mistakes
    Edit,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    if matches!(args.command, Command::Edit) {
        return edit(home).await;
    }
    with_host(home, async |client| match args.command {
        Command::List { key, json } => list(client, key.as_deref(), json).await,
        Command::Get { key, json } => get(client, &key, json).await,
        Command::Set { key, value, json } => set(client, &key, Some(&value), json).await,
        Command::Unset { key, json } => set(client, &key, None, json).await,
        Command::Edit => Ok(()),
    })
    .await
}

/// Returns the names of all keys, with `NAME` for that of a tier, chain or schedule. Needs no host.
pub(crate) fn key_names() -> Vec<String> {
    let keys = keys(API_DESCRIPTION).into_iter();
    keys.map(|key| key.name).collect()
}

pub(crate) async fn names_of(client: &Client) -> Result<Vec<String>, Error> {
    let keys = named_keys(&fetch_config(client).await?).into_iter();
    Ok(keys.map(|(name, _)| name).collect())
}

async fn fetch_config(client: &Client) -> Result<Value, Error> {
    Ok(client.get(PATH).await?["config"].take())
}

async fn list(client: &Client, wanted: Option<&str>, as_json: bool) -> Result<(), Error> {
    let config = fetch_config(client).await?;
    let all = named_keys(&config);
    let is_shown = |name: &str| wanted.is_none_or(|wanted| is_in(name, wanted));
    let shown: Vec<_> = all.iter().filter(|(name, _)| is_shown(name)).collect();
    if let (true, Some(wanted)) = (shown.is_empty(), wanted) {
        return Err(unknown_key_error(wanted, &all));
    }
    if as_json {
        let object = |(name, key): &&(String, Key)| {
            json!({
                "key": name,
                "value": value_at(&config, name),
                "default": key.default,
                "type": key.accepts.words(),
                "about": key.about,
            })
        };
        let objects: Vec<_> = shown.iter().map(object).collect();
        output::write_json(&json!({"keys": objects}));
        return Ok(());
    }
    for (name, key) in shown {
        output::write(&render_key(name, key, value_at(&config, name)));
    }
    Ok(())
}

async fn get(client: &Client, name: &str, as_json: bool) -> Result<(), Error> {
    let config = fetch_config(client).await?;
    let all = named_keys(&config);
    if !all.iter().any(|(known, _)| is_in(known, name)) {
        return Err(unknown_key_error(name, &all));
    }
    match value_at(&config, name) {
        value if as_json => output::write_json(value.unwrap_or(&Value::Null)),
        Some(Value::Object(_)) => {
            for (known, _) in all.iter().filter(|(known, _)| is_in(known, name)) {
                if let Some(value) = value_at(&config, known) {
                    output::write_line(&format!("{known} = {value}"));
                }
            }
        }
        Some(value) => output::write_line(&to_bare_text(value)),
        None => output::error_line(&format!("{name} is not set.")),
    }
    Ok(())
}

/// Sets a key, or removes it without a value.
async fn set(client: &Client, name: &str, text: Option<&str>, as_json: bool) -> Result<(), Error> {
    let before = fetch_config(client).await?;
    let all = named_keys(&before);
    let Some((_, key)) = all.iter().find(|(known, _)| known == name) else {
        return Err(unknown_key_error(name, &all));
    };
    let value = text.map_or(Value::Null, |text| key.value(text));
    let answer = client.patch(PATH, &patch_of_key(name, value)).await?;
    let now = value_at(&answer["config"], name);
    if as_json {
        output::write_json(&json!({"key": name, "value": now}));
        return Ok(());
    }
    output::write_line(&match now {
        Some(value) => format!("{name} = {value}"),
        None => format!("{name} is not set."),
    });
    if let Some(model) = named_model(name, &answer["config"])
        && let Ok(installed) = models::installed(client).await
        && let Some(note) = missing_model_notice(model, &installed)
    {
        output::error_line(&note);
    }
    Ok(())
}

/// Returns the name that a tier's model has been given by this key; `None` for another key, and where another server has the model.
fn named_model<'a>(name: &str, config: &'a Value) -> Option<&'a str> {
    let tier = name.strip_prefix("tiers.")?.strip_suffix(".model")?;
    let engine = value_at(config, &format!("tiers.{tier}.engine"));
    if engine.is_some_and(|engine| engine != "embedded") {
        return None;
    }
    let model = value_at(config, name)?.as_str()?;
    // A path is read by the host, which may be in another folder.
    (!model.is_empty() && !model.contains('/')).then_some(model)
}

/// A model may be set before it is downloaded, so that this is no error.
fn missing_model_notice(model: &str, installed: &[LibraryModel]) -> Option<String> {
    let id = model.strip_suffix(".gguf").unwrap_or(model);
    let mut ids = installed.iter().map(|model| model.id.as_str());
    if ids.any(|known| known == id) {
        return None;
    }
    let ids = installed.iter().map(|model| model.id.as_str());
    let hint = suggest(
        id,
        ids,
        format!("download it with `tierbar models pull {model}`"),
    );
    Some(format!(
        "note: there is no model \"{model}\" on this machine yet; {hint}"
    ))
}

async fn edit(home: Option<PathBuf>) -> Result<(), Error> {
    let folder = home.clone().unwrap_or_else(tierbar_host::data_folder);
    let path = folder.join("config.toml");
    if !stdin().is_terminal() {
        let message = "there is no terminal to edit on".to_owned();
        return Err(bad_request(message).hint(format!(
            "change {} or use `tierbar config set`",
            path.display()
        )));
    }
    if !path.exists() {
        // Its first host writes it, with comments.
        Client::running_or_own(home.clone()).await?.close().await;
    }
    open_editor(&path).await?;
    let client = Client::running_or_own(home).await?;
    if !client.is_own() {
        tokio::time::sleep(READ_WITHIN).await;
    }
    let status = client.get("/tierbar/v1/status").await;
    client.close().await;
    let notices = status?["notices"].take();
    let notices: Vec<_> = notices.as_array().into_iter().flatten().collect();
    for notice in &notices {
        output::error_line(&format!("note: {}", to_bare_text(notice)));
    }
    if notices.is_empty() {
        output::write_line(&format!("{} has no mistakes.", path.display()));
    }
    Ok(())
}

/// Opens a file in the user's editor, and returns when it is closed.
async fn open_editor(path: &Path) -> Result<(), Error> {
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|editor| !editor.trim().is_empty())
        .unwrap_or_else(|| "vi".to_owned());
    // The variables hold a command line, such as `code --wait`.
    let status = tokio::process::Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(path)
        .status()
        .await
        .map_err(|error| Error::new(Code::Internal, format!("sh did not start: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(bad_request(format!("`{editor}` ended with {status}"))
        .hint("set $EDITOR to your editor, such as nano"))
}

/// Returns the keys by the names that they have in this configuration: those of its tiers, chains and schedules.
fn named_keys(config: &Value) -> Vec<(String, Key)> {
    let mut named = Vec::new();
    for key in keys(API_DESCRIPTION) {
        let place = format!(".{NAME}.");
        let Some((table, rest)) = key.name.split_once(&place) else {
            named.push((key.name.clone(), key));
            continue;
        };
        let entries = value_at(config, table).and_then(Value::as_object);
        for name in entries.into_iter().flat_map(Map::keys) {
            named.push((format!("{table}.{name}.{rest}"), key.clone()));
        }
    }
    named.sort_by(|(one, _), (other, _)| one.cmp(other));
    named
}

/// Returns whether a key is this one, or in this table.
fn is_in(name: &str, wanted: &str) -> bool {
    name.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the value at a dotted name; `None` where there is none.
fn value_at<'a>(config: &'a Value, name: &str) -> Option<&'a Value> {
    let found = name.split('.').try_fold(config, |at, part| at.get(part));
    found.filter(|value| !value.is_null())
}

fn patch_of_key(name: &str, value: Value) -> Value {
    name.rsplit('.')
        .fold(value, |inner, part| json!({ part: inner }))
}

fn unknown_key_error(name: &str, known: &[(String, Key)]) -> Error {
    let names = known.iter().map(|(name, _)| name.as_str());
    let hint = suggest(name, names, "`tierbar config list` lists the keys");
    let message = format!("the configuration has no key {name}");
    Error::new(Code::NotFound, message).hint(hint)
}

/// Returns a value as a script wants it: a text without quotes.
fn to_bare_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn render_key(name: &str, key: &Key, value: Option<&Value>) -> String {
    let value = value.map_or_else(|| "(not set)".to_owned(), ToString::to_string);
    let mut text = format!("{name} = {value}\n");
    if !key.about.is_empty() {
        text += &format!("  {}\n", key.about);
    }
    let default = key.default.as_ref();
    let default = default.map_or_else(String::new, |default| format!(" [default: {default}]"));
    text += &format!("  {}{default}\n", key.accepts.words());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Value {
        json!({
            "listen": "127.0.0.1:1", "models_dir": "", "policy": {"home": "", "battery_below": 20},
            "tiers": {"fast": {"model": "m"}}, "chains": {},
        })
    }

    #[test]
    fn keys_have_the_names_of_the_tiers() {
        let config = sample();
        let all = named_keys(&config);
        let has = |name: &str| all.iter().any(|(known, _)| known == name);
        assert!(has("listen") && has("tiers.fast.model") && has("menu_bar.text"));
        assert!(!has("tiers.NAME.model") && !has("tiers.heavy.model"));
        assert!(is_in("policy.home", "policy") && is_in("policy.home", "policy.home"));
        assert!(!is_in("policy.home", "pol") && !is_in("policy.home", "policy.home.x"));
    }

    #[test]
    fn a_key_becomes_a_patch_of_its_table() {
        assert_eq!(
            patch_of_key("tiers.fast.context", json!(4096)),
            json!({"tiers": {"fast": {"context": 4096}}})
        );
        assert_eq!(patch_of_key("listen", Value::Null), json!({"listen": null}));
        assert_eq!(
            value_at(&sample(), "policy.battery_below"),
            Some(&json!(20))
        );
        assert_eq!(value_at(&sample(), "policy.nothing"), None);
        assert_eq!(value_at(&sample(), "listen.nothing"), None);
    }

    #[test]
    fn a_missing_model_is_noted() {
        let mut config = sample();
        assert_eq!(named_model("tiers.fast.model", &config), Some("m"));
        assert_eq!(named_model("policy.home", &config), None);
        config["tiers"]["fast"]["engine"] = json!({"endpoint": "http://localhost"});
        assert_eq!(named_model("tiers.fast.model", &config), None);
        let note = missing_model_notice("m.gguf", &[]).unwrap();
        assert!(
            note.starts_with("note: there is no model \"m.gguf\""),
            "{note}"
        );
    }

    #[test]
    fn a_mistyped_key_is_answered_with_the_nearest() {
        let error = unknown_key_error("polcy.home", &named_keys(&sample()));
        assert_eq!(error.code, Code::NotFound);
        let hint = error.hint.unwrap_or_default();
        assert!(hint.starts_with("did you mean policy.home?"), "{hint}");
    }

    #[test]
    fn a_key_is_listed_with_its_meaning() {
        let config = sample();
        let all = named_keys(&config);
        let (name, key) = all
            .iter()
            .find(|(name, _)| name == "policy.battery_below")
            .unwrap();
        let text = render_key(name, key, value_at(&config, name));
        assert!(text.starts_with("policy.battery_below = 20\n  "), "{text}");
        assert!(text.ends_with("  a whole number [default: 20]\n"), "{text}");
    }
}
