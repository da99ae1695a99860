//! What a model asks for, in tool calls or in lines of text, and the tools as they are described to it.

mod arguments;
#[cfg(test)]
mod tests;

pub use tierbar_chats::written_calls::{GrowingText, named_calls};

use crate::{
    consent::{Act, Collections, WebAddress},
    marking::{defuse, without_marks},
    text_choice::Route,
};
use arguments::Arguments;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};
use tierbar_chats::thinking::without_thoughts;

/// A call as a model writes it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Call {
    pub id: String,
    pub name: String,
    /// JSON in a string.
    pub arguments: String,
}

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallIntent {
    /// Ready to be decided about.
    Act(Act),
    /// Becomes an act once the file has been read.
    Write { path: String, content: String },
    Edit {
        path: String,
        old: String,
        new: String,
    },
}

/// A tool of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalTool {
    pub server: String,
    pub name: String,
    /// The server's words, which are data.
    pub description: String,
    /// The same.
    pub parameters: Value,
    /// Stands for both, so that a change of them is seen.
    pub definition: String,
}

/// What calls are read with.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The folder of the chat, by its real path; without one there are neither files nor commands.
    pub folder: Option<PathBuf>,
    /// The search provider's name; without one there is no search.
    pub provider: Option<String>,
    /// Whether pages can be opened.
    pub pages: bool,
    /// The documents that can be searched; without them there is no such search.
    pub documents: Option<Collections>,
    pub external: Vec<ExternalTool>,
    /// The names of the programs that a command can start; `None` if they are unknown.
    pub programs: Option<BTreeSet<String>>,
}

/// The longest description of an external tool, in characters.
const DESCRIPTION: usize = 500;
/// What a shell itself understands, at the beginning of a line.
const SHELL_WORDS: [&str; 61] = [
    "!", ".", ":", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue",
    "declare", "dirs", "echo", "eval", "exec", "exit", "export", "false", "fc", "fg", "for",
    "function", "getopts", "hash", "help", "history", "if", "jobs", "kill", "let", "local", "popd",
    "printf", "pushd", "pwd", "read", "readonly", "return", "select", "set", "shift", "shopt",
    "source", "test", "time", "times", "trap", "true", "type", "typeset", "ulimit", "umask",
    "unalias", "unset", "until", "wait", "which", "while", "then", "do",
];
/// Between the server and the tool in the name of an external one.
const BETWEEN: &str = "__";

impl Surroundings {
    /// The routes that there are.
    pub fn routes(&self) -> Vec<Route> {
        let mut routes = Vec::new();
        if self.provider.is_some() || self.pages {
            routes.push(Route::Search);
        }
        if self.folder.is_some() {
            routes.extend([Route::Shell, Route::Files]);
        }
        if self.documents.is_some() {
            routes.push(Route::Documents);
        }
        routes.push(Route::Chat);
        routes
    }

    /// The tools in OpenAI's form.
    pub fn tools(&self) -> Vec<Value> {
        let text = |description: &str| json!({ "type": "string", "description": description });
        let mut tools = Vec::new();
        if self.folder.is_some() {
            tools.extend([
                tool_schema(
                    "run_command",
                    "Runs a line of shell in the user's folder, in a sandbox that can write only there. The user is asked first.",
                    json!({
                        "command": text("The line of shell"),
                        "network": { "type": "boolean", "description": "Whether it needs the network; the user rarely allows it" },
                    }),
                    &["command"],
                ),
                tool_schema(
                    "read_file",
                    "Reads a text file of the user's folder.",
                    json!({
                        "path": text("The path, relative to the folder"),
                        "from_line": { "type": "integer", "description": "The first line, from 1" },
                    }),
                    &["path"],
                ),
                tool_schema(
                    "list_files",
                    "Lists a folder inside the user's folder.",
                    json!({ "path": text("The path, relative to the folder; \"\" for the folder itself") }),
                    &["path"],
                ),
                tool_schema(
                    "write_file",
                    "Creates a file, or replaces all of its content. The user sees the difference and is asked first.",
                    json!({ "path": text("The path, relative to the folder"), "content": text("The whole content") }),
                    &["path", "content"],
                ),
                tool_schema(
                    "edit_file",
                    "Replaces a text that is in a file exactly once. The user sees the difference and is asked first.",
                    json!({
                        "path": text("The path, relative to the folder"),
                        "old": text("The text to replace, with enough around it to be there once"),
                        "new": text("What replaces it"),
                    }),
                    &["path", "old", "new"],
                ),
            ]);
        }
        if self.provider.is_some() {
            tools.push(tool_schema(
                "search_web",
                "Searches the web, and returns titles, addresses and excerpts.",
                json!({ "query": text("The words to search for") }),
                &["query"],
            ));
        }
        if self.pages {
            tools.push(tool_schema(
                "read_page",
                "Opens a page of the web, and returns its text.",
                json!({ "url": text("The address, with https://") }),
                &["url"],
            ));
        }
        if self.documents.is_some() {
            tools.push(tool_schema(
                "search_documents",
                "Searches the user's own documents, and returns numbered passages with their places.",
                json!({ "query": text("The words or the question to look up") }),
                &["query"],
            ));
        }
        for external in &self.external {
            let description: String = defuse(&external.description)
                .chars()
                .take(DESCRIPTION)
                .collect();
            tools.push(json!({
                "type": "function",
                "function": {
                    "name": format!("{}{BETWEEN}{}", external.server, external.name),
                    "description": description,
                    "parameters": defuse_schema(&external.parameters),
                },
            }));
        }
        tools
    }

    /// Reads a call. `known`: the addresses that the person or the search provider has given.
    ///
    /// # Errors
    /// What is wrong, for the model.
    pub fn read_call(&self, call: &Call, known: &[WebAddress]) -> Result<CallIntent, String> {
        let name = call.name.trim();
        let tools = self.tools();
        let mut functions = tools.iter().map(|tool| &tool["function"]);
        let schema = functions.find(|function| function["name"] == name);
        let schema = schema.map_or(&Value::Null, |function| &function["parameters"]);
        let arguments = Arguments::parse(name, &call.arguments, schema)?;
        let text = |field| arguments.text(field);
        match name {
            "run_command" => self.command(text("command")?, arguments.flag("network")?),
            "read_file" => self.reading(&text("path")?, arguments.line("from_line")?),
            "list_files" => self.reading(&text("path")?, 1),
            "write_file" => {
                self.folder()?;
                Ok(CallIntent::Write {
                    path: text("path")?,
                    content: text("content")?,
                })
            }
            "edit_file" => {
                self.folder()?;
                Ok(CallIntent::Edit {
                    path: text("path")?,
                    old: text("old")?,
                    new: text("new")?,
                })
            }
            "search_web" => self.search(text("query")?),
            "search_documents" => self.look_up(text("query")?),
            "read_page" => self.page(&text("url")?, known),
            other => {
                let external = self.external.iter().find(|tool| {
                    other
                        .strip_prefix(&tool.server)
                        .and_then(|rest| rest.strip_prefix(BETWEEN))
                        == Some(&tool.name)
                });
                let external = external.ok_or_else(|| format!("there is no tool {other}"))?;
                Ok(CallIntent::Act(Act::Tool {
                    server: external.server.clone(),
                    name: external.name.clone(),
                    definition: external.definition.clone(),
                    arguments: arguments.values,
                }))
            }
        }
    }

    /// Reads a model's line for a route, which may stand in a code block or behind a prompt.
    ///
    /// # Errors
    /// What is wrong, for the model.
    pub fn read_line(
        &self,
        route: Route,
        answer: &str,
        known: &[WebAddress],
    ) -> Result<CallIntent, String> {
        let answer = without_marks(without_thoughts(answer));
        let answer = answer.trim();
        // A file's content may stand in a block below the line that names it.
        let answer = match route {
            Route::Files if !answer.starts_with("```") => answer,
            _ => without_fence(answer),
        };
        let first = answer.lines().find(|line| !line.trim().is_empty());
        let first = first.ok_or("the answer is empty")?.trim();
        match route {
            Route::Shell => {
                let line = first.strip_prefix("$ ").unwrap_or(first);
                // A line that goes on is one command; more lines would be more commands.
                let line = if first.ends_with('\\') { answer } else { line };
                self.command(line.to_owned(), false)
            }
            Route::Search => {
                let words = first.trim_matches(['"', '“', '”', '`']).trim();
                let words = words.strip_prefix("open ").unwrap_or(words);
                if words.starts_with("http://") || words.starts_with("https://") {
                    self.page(words, known)
                } else {
                    self.search(words.to_owned())
                }
            }
            Route::Files => {
                let (verb, path) = first.split_once(' ').unwrap_or((first, ""));
                let path = path.trim().trim_matches(['"', '`', '\'']);
                match verb.to_lowercase().as_str() {
                    "read" | "cat" | "open" | "list" | "ls" => self.reading(path, 1),
                    "write" | "create" => {
                        self.folder()?;
                        let content = answer.split_once('\n').map_or("", |(_, content)| content);
                        Ok(CallIntent::Write {
                            path: path.to_owned(),
                            content: without_fence(content.trim_start_matches('\n')).to_owned(),
                        })
                    }
                    _ => Err("begin with read, list or write, and the path".to_owned()),
                }
            }
            Route::Documents => self.look_up(first.to_owned()),
            Route::Chat => Err("chat has no tool".to_owned()),
        }
    }

    fn folder(&self) -> Result<&PathBuf, String> {
        let folder = self.folder.as_ref();
        folder.ok_or_else(|| "this chat has no folder".to_owned())
    }

    fn command(&self, line: String, network: bool) -> Result<CallIntent, String> {
        self.check_program(&line)?;
        Ok(CallIntent::Act(Act::Command {
            line,
            folder: self.folder()?.clone(),
            network,
        }))
    }

    /// # Errors
    /// What is wrong, for a line that begins with a word that is no program, as a sentence does. What the shell has to work out passes.
    fn check_program(&self, line: &str) -> Result<(), String> {
        let word = line.split_whitespace().next().unwrap_or_default();
        let is_plain = |c: char| c.is_alphanumeric() || "-_.+,:!’".contains(c);
        let is_known = |programs: &BTreeSet<String>| programs.contains(word);
        let passes = !word.chars().all(is_plain)
            || SHELL_WORDS.contains(&word)
            || self.programs.as_ref().is_none_or(is_known);
        if passes {
            return Ok(());
        }
        Err(format!("there is no program {word}; write a line of shell"))
    }

    fn reading(&self, path: &str, from_line: usize) -> Result<CallIntent, String> {
        let folder = self.folder()?;
        Ok(CallIntent::Act(Act::Read {
            folder: folder.clone(),
            path: relative_path(folder, path)?,
            from_line,
        }))
    }

    fn search(&self, words: String) -> Result<CallIntent, String> {
        let provider = self.provider.clone();
        let provider = provider.ok_or("there is no search provider")?;
        Ok(CallIntent::Act(Act::Search { words, provider }))
    }

    fn look_up(&self, words: String) -> Result<CallIntent, String> {
        let collections = self.documents.clone();
        let collections = collections.ok_or("no documents can be searched in this chat")?;
        Ok(CallIntent::Act(Act::Documents { words, collections }))
    }

    fn page(&self, url: &str, known: &[WebAddress]) -> Result<CallIntent, String> {
        if !self.pages {
            return Err("pages cannot be opened in this chat".to_owned());
        }
        let address = WebAddress::parse(url)?;
        let known = known.contains(&address);
        Ok(CallIntent::Act(Act::Page { address, known }))
    }
}

/// Returns a path as a model wrote it, relative to the folder. `..` is resolved in the text: what is opened follows no link.
///
/// # Errors
/// What is wrong, for a path that leads out of it.
pub fn relative_path(folder: &Path, path: &str) -> Result<PathBuf, String> {
    if path.contains('\0') {
        return Err("the path has a NUL byte".to_owned());
    }
    let path = Path::new(path.trim());
    let mut full = PathBuf::new();
    for part in folder.join(path).components() {
        if part == Component::ParentDir {
            full.pop();
        } else if part != Component::CurDir {
            full.push(part);
        }
    }
    let inside = full.strip_prefix(folder).map(Path::to_owned);
    inside.map_err(|_| format!("{} is outside of {}", path.display(), folder.display()))
}

/// The addresses in a person's own words.
pub fn addresses(text: &str) -> Vec<WebAddress> {
    let words =
        text.split(|letter: char| letter.is_whitespace() || "<>\"'`()[]{}".contains(letter));
    let words = words.filter(|word| word.starts_with("http://") || word.starts_with("https://"));
    words
        .filter_map(|word| {
            WebAddress::parse(word.trim_end_matches(['.', ',', ';', '!', '?', ':'])).ok()
        })
        .collect()
}

/// Returns the call that a line for a route stands for: the tool's name, and the arguments.
pub(crate) fn as_call(route: Route, text: &str) -> (String, Value) {
    let first = text.lines().next().unwrap_or_default().trim();
    let (tool, field, value) = match route {
        Route::Search if first.contains("://") => ("read_page", "url", first),
        Route::Search => ("search_web", "query", first),
        Route::Shell => ("run_command", "command", first),
        Route::Documents => ("search_documents", "query", first),
        Route::Files | Route::Chat => {
            let (verb, path) = first.split_once(' ').unwrap_or((first, ""));
            let tool = match verb.to_lowercase().as_str() {
                "write" | "create" => "write_file",
                "list" | "ls" => "list_files",
                _ => "read_file",
            };
            (tool, "path", path)
        }
    };
    (tool.to_owned(), json!({ field: value }))
}

fn tool_schema(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": { "type": "object", "properties": properties, "required": required },
        },
    })
}

/// A server's schema, with its words as data.
fn defuse_schema(schema: &Value) -> Value {
    match schema {
        Value::String(text) => Value::String(defuse(text).chars().take(DESCRIPTION).collect()),
        Value::Array(items) => items.iter().map(defuse_schema).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (defuse(name), defuse_schema(value)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => schema.clone(),
    }
}

/// What a code block holds, if the answer has one; the answer otherwise.
fn without_fence(answer: &str) -> &str {
    let Some((_, inside)) = answer.split_once("```") else {
        return answer;
    };
    // The language.
    let Some((_, inside)) = inside.split_once('\n') else {
        return inside.trim_matches('`');
    };
    inside.split("```").next().unwrap_or(inside).trim_end()
}
