//! The settings with which other programs use Tierbar: which tier suits a client, and what to enter where.

mod choose;
mod clients;

pub use clients::{CLIENTS, find};

use choose::choose;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tierbar_core::TierId;

/// What stands for an API key where none is needed: many clients refuse an empty one.
pub const NO_KEY: &str = "unused";
/// What stands for an API key where one is needed and is not known.
pub const SOME_KEY: &str = "YOUR_API_KEY";

/// A program that uses Tierbar, and where its settings are. The texts are templates.
#[derive(Debug)]
pub struct Client {
    /// As the command line and the API name it.
    pub id: &'static str,
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    pub needs: Needs,
    /// What is there if it is installed on this machine; empty if nothing is.
    pub traces: &'static [Trace],
    pub settings: &'static [Setting],
    /// What its user should know, one sentence or a few each.
    pub notes: &'static [&'static str],
}

impl Client {
    /// Returns whether it uses Tierbar's models. One that does not only uses its tools, over MCP.
    pub fn uses_models(&self) -> bool {
        let addresses = ["{base}", "{v1}", "{model}"];
        let mut settings = self.settings.iter();
        settings.any(|setting| addresses.iter().any(|name| setting.text.contains(name)))
    }

    /// Returns whether it is among the installed ones; `None` if nothing would show that.
    pub fn is_found(&self, installed: &[&str]) -> Option<bool> {
        (!self.traces.is_empty()).then(|| installed.contains(&self.id))
    }

    /// Returns where its configuration file may be, if it has one.
    pub fn file(&self) -> Option<&'static [&'static str]> {
        let mut settings = self.settings.iter();
        settings.find_map(|setting| match setting.place {
            Place::File { paths, .. } => Some(paths),
            _ => None,
        })
    }
}

/// What a client needs of a tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Needs {
    pub tools: bool,
    /// The least context in tokens; 0 if any will do.
    pub context: u32,
}

/// A sign that a client is installed.
#[derive(Debug, Clone, Copy)]
pub enum Trace {
    /// A program that the shell finds.
    Program(&'static str),
    /// A file or folder.
    Path(&'static str),
}

/// One thing to enter somewhere.
#[derive(Debug)]
pub struct Setting {
    pub when: SettingCondition,
    pub place: Place,
    /// With `{base}`, `{v1}`, `{key}`, `{model}`, `{context}`, `{answer}`, `{tools}` and `{embedder}` in the place of values; for the
    /// command that serves MCP, `{program}` and `{arguments}` as JSON, or `{command}` for a shell.
    pub text: &'static str,
}

/// For which server a setting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingCondition {
    Always,
    /// A key is needed, or none is.
    WithKey,
    WithoutKey,
    /// A tier for embeddings has a model.
    WithEmbedder,
}

#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// Variables of the environment, one `NAME=value` on a line.
    Environment,
    /// A part of the client's configuration file.
    File {
        /// Where it may be: the first that exists, else the first whose folder does. Begins with `~` or a variable.
        paths: &'static [&'static str],
        form: Form,
    },
    /// A program, in this language.
    Code(&'static str),
    /// A command in a terminal.
    Terminal,
    /// Fields of the client's own window.
    Window,
}

/// The form of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// With comments and trailing commas, where the client takes them.
    Json,
    Toml,
    Yaml,
}

/// The running server, as far as clients' settings depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClientServer {
    /// The base address, such as `http://127.0.0.1:11435`.
    pub url: String,
    /// Whether inference needs an API key.
    pub key_required: bool,
    /// The tiers that have a model, in reading order.
    pub tiers: Vec<ClientTier>,
    /// The tier for embeddings, if it has a model.
    pub embedder: Option<TierId>,
    /// The command that serves MCP over stdin and stdout on the server's machine, the program first.
    pub mcp_command: Vec<String>,
}

/// A tier that answers chats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClientTier {
    pub id: TierId,
    /// Its context in tokens; `null` if that is not known before it loads.
    pub context_tokens: Option<u32>,
    /// Whether its model's chat template supports tools. If not, Tierbar describes them in the prompt. `null` if unknown.
    pub tools: Option<bool>,
}

/// A client's settings for this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClientSettings {
    pub id: String,
    pub name: String,
    pub about: String,
    #[serde(default)]
    #[schema(required = true)]
    pub needs: Needs,
    /// Whether it is installed on this machine; `null` if nothing would show that.
    pub found: Option<bool>,
    /// The suggested `model`: a tier. `null` for a client that uses Tierbar's tools alone.
    pub model: Option<String>,
    /// Why this one, in a sentence.
    pub reason: String,
    /// What will not work with it, each with what to do.
    pub warnings: Vec<String>,
    pub settings: Vec<Snippet>,
    pub notes: Vec<String>,
}

/// A text to enter somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Snippet {
    pub kind: SnippetKind,
    /// Where it goes, such as `~/.codex/config.toml`.
    pub place: String,
    pub text: String,
    /// The form of the file, which `tierbar connect CLIENT --write` can change; `null` for all else.
    pub form: Option<Form>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SnippetKind {
    Environment,
    File,
    Code,
    Terminal,
    Window,
}

/// Renders a client's settings: with the named tier, or the one that suits it best, and with this API key, if it is known.
pub fn render(
    client: &Client,
    server: &ClientServer,
    tier: Option<&str>,
    key: Option<&str>,
) -> ClientSettings {
    let choice = choose(client, server, tier);
    let key = key.unwrap_or(match server.key_required {
        true => SOME_KEY,
        false => NO_KEY,
    });
    let base = server.url.trim_end_matches('/');
    let embedder = server.embedder.as_ref().map_or("", TierId::as_str);
    let program = server.mcp_command.first().map_or("tierbar", String::as_str);
    let arguments = server.mcp_command.get(1..).unwrap_or_default();
    let command = server.mcp_command.iter().map(|part| quote_for_shell(part));
    let command = command.collect::<Vec<_>>().join(" ");
    let fill = |text: &str| {
        text.replace("{base}", base)
            .replace("{v1}", &format!("{base}/v1"))
            .replace("{key}", key)
            .replace("{model}", &choice.model)
            .replace("{context}", &choice.context_tokens.to_string())
            .replace("{answer}", &choice.answer_tokens().to_string())
            .replace("{tools}", &choice.tools.to_string())
            .replace("{embedder}", embedder)
            .replace("{program}", &json!(program).to_string())
            .replace("{arguments}", &json!(arguments).to_string())
            .replace("{command}", &command)
    };
    let holds = |when: SettingCondition| match when {
        SettingCondition::Always => true,
        SettingCondition::WithKey => server.key_required,
        SettingCondition::WithoutKey => !server.key_required,
        SettingCondition::WithEmbedder => server.embedder.is_some(),
    };
    let settings = client.settings.iter().filter(|setting| holds(setting.when));
    let snippet = |setting: &Setting| {
        let text = fill(setting.text.trim_matches('\n'));
        let of = |kind, place: &str, text, form| Snippet {
            kind,
            place: place.to_owned(),
            text,
            form,
        };
        match setting.place {
            Place::Environment => {
                let place = "the environment of your shell";
                of(SnippetKind::Environment, place, to_exports(&text), None)
            }
            Place::File { paths, form } => {
                of(SnippetKind::File, usual_path(paths), text, Some(form))
            }
            Place::Code(language) => of(SnippetKind::Code, language, text, None),
            Place::Terminal => of(SnippetKind::Terminal, "a terminal", text, None),
            Place::Window => of(SnippetKind::Window, client.name, text, None),
        }
    };
    let mut notes: Vec<_> = client.notes.iter().map(|note| fill(note)).collect();
    let uses_models = client.uses_models();
    if key == SOME_KEY && uses_models {
        notes.push(format!(
            "This server needs an API key. Create one with `tierbar key add {}` and enter it for {SOME_KEY}.",
            client.id
        ));
    }
    if base.starts_with("https://") && uses_models {
        notes.push(
            "The client must trust this server's certificate, `certificate.pem` in Tierbar's data folder, such as with SSL_CERT_FILE."
                .to_owned(),
        );
    }
    let settings = join_snippets(settings.map(snippet));
    let (model, reason, warnings) = match uses_models {
        true => (Some(choice.model), choice.reason, choice.warnings),
        false => {
            let reason = format!("{} uses Tierbar's tools and no model of it", client.name);
            (None, reason, Vec::new())
        }
    };
    ClientSettings {
        id: client.id.to_owned(),
        name: client.name.to_owned(),
        about: client.about.to_owned(),
        needs: client.needs,
        found: None,
        model,
        reason,
        warnings,
        settings,
        notes,
    }
}

/// Joins what goes to one place: neighbors of the environment, or of a terminal.
fn join_snippets(snippets: impl Iterator<Item = Snippet>) -> Vec<Snippet> {
    let mut all: Vec<Snippet> = Vec::new();
    for snippet in snippets {
        let is_of_lines = matches!(
            snippet.kind,
            SnippetKind::Environment | SnippetKind::Terminal
        );
        match all.last_mut() {
            Some(last) if is_of_lines && last.kind == snippet.kind => {
                last.text.push('\n');
                last.text.push_str(&snippet.text);
            }
            _ => all.push(snippet),
        }
    }
    all
}

/// Returns the path that people know: one in the home folder.
fn usual_path(paths: &'static [&'static str]) -> &'static str {
    let usual = paths.iter().find(|path| path.starts_with('~'));
    usual.or(paths.first()).copied().unwrap_or_default()
}

fn to_exports(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        format!("export {name}={}", quote_for_shell(value))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a word as a shell reads it.
fn quote_for_shell(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:[]".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns the table of the clients for the documents: each with its one command.
pub fn table() -> String {
    let mut table = "| client | what it is | command |\n|---|---|---|\n".to_owned();
    for client in CLIENTS {
        let write = client.file().map_or("", |_| " --write");
        table += &format!(
            "| {} | {} | `tierbar connect {}{write}` |\n",
            client.name, client.about, client.id
        );
    }
    table
}

#[cfg(test)]
mod tests;
