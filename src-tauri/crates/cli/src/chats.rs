//! `tierbar chats`: lists, searches, shows, exports, imports and deletes saved chats.

use crate::{
    Group,
    client::{Client, admin_path, read_answer, with_host},
    output::{self, count},
};
use serde_json::{Value, json};
use std::{
    ffi::OsStr,
    fs,
    io::{Error as IoError, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};
use tierbar_chats::{
    Chat, ChatSummary, export,
    import::{ChatImport, Omission, OmittedPart},
};
use tierbar_core::{Code, Error};
use tierbar_host::named::{self, unreadable};
use tierbar_nofollow::{Mode, OpenFile};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List saved chats, pinned ones first, then the newest
    List,
    /// List the chats whose title or messages have these words
    Search {
        /// Words; the last may be incomplete
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Print a chat as Markdown, or with --json all of its branches
    Show {
        /// Chat ID
        id: String,
        /// Print the reasoning too
        #[arg(long)]
        reasoning: bool,
    },
    /// Save a chat in a file
    #[command(override_usage = "tierbar chats export [OPTIONS] <ID|--all>")]
    Export {
        /// Chat ID
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Save every chat, each in its own file
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// File format: markdown has the current branch; json has all branches and can be imported
        #[arg(long, value_name = "FORMAT", value_parser = ["markdown", "json"], default_value = "markdown")]
        format: String,
        /// Folder for the file
        #[arg(long, short, value_name = "DIR", default_value = ".")]
        output: PathBuf,
    },
    /// Import chats exported from Tierbar, ChatGPT, Open WebUI or LM Studio
    Import {
        /// Files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Delete a chat
    #[command(visible_alias = "rm")]
    Delete {
        /// Chat ID
        id: String,
    },
    /// Restore a chat that was deleted in the last ten minutes
    Restore {
        /// Chat ID
        id: String,
    },
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    let json = args.json;
    with_host(home, async |client| match args.command {
        None | Some(Command::List) => list(client, None, json).await,
        Some(Command::Search { words }) => list(client, Some(words.join(" ")), json).await,
        Some(Command::Show { id, reasoning }) => show(client, &id, reasoning, json).await,
        Some(Command::Export {
            id,
            all,
            format,
            output,
        }) => save(client, id.filter(|_| !all), &format, &output, json).await,
        Some(Command::Import { files }) => import(client, &files, json).await,
        Some(Command::Delete { id }) => delete(client, &id, json).await,
        Some(Command::Restore { id }) => restore(client, &id, json).await,
    })
    .await
}

async fn fetch_chats(client: &Client, words: Option<&str>) -> Result<Value, Error> {
    let query: Vec<_> = words.map(|words| ("search", words)).into_iter().collect();
    let mut listed = client.get(&admin_path(&["chats"], &query)).await?;
    Ok(listed["chats"].take())
}

async fn list(client: &Client, words: Option<String>, json: bool) -> Result<(), Error> {
    let listed = fetch_chats(client, words.as_deref()).await?;
    if json {
        output::write_line(&format!("{listed:#}"));
        return Ok(());
    }
    let chats: Vec<ChatSummary> = read_answer(listed)?;
    output::write(&match (&*chats, words) {
        ([], Some(_)) => "No chats match.\n".to_owned(),
        ([], None) => NONE.to_owned(),
        (chats, _) => chats.iter().map(|chat| render_chat(chat) + "\n").collect(),
    });
    Ok(())
}

const NONE: &str = "There are no saved chats. Start one with: tierbar chat\n";

fn render_chat(chat: &ChatSummary) -> String {
    let (day, _) = chat.updated_at.split_once('T').unwrap_or_default();
    let mut line = format!("{}  {day}  {}", chat.id, title(chat));
    if chat.pinned {
        line.push_str("  (pinned)");
    }
    let excerpt = chat.found.as_ref().map_or("", |found| &found.excerpt);
    if !excerpt.is_empty() {
        let words: Vec<_> = excerpt.split_whitespace().collect();
        line += &format!("\n    {}", words.join(" "));
    }
    line
}

fn title(chat: &ChatSummary) -> &str {
    match chat.title.as_str() {
        "" => "New Chat",
        title => title,
    }
}

async fn show(client: &Client, id: &str, reasoning: bool, json: bool) -> Result<(), Error> {
    let chat = client.get(&admin_path(&["chats", id], &[])).await?;
    if json {
        output::write_line(&format!("{chat:#}"));
        return Ok(());
    }
    let chat: Chat = read_answer(chat)?;
    output::write(&export::markdown_with_failures(&chat, reasoning));
    Ok(())
}

/// Saves one chat, or without an id all of them.
async fn save(
    client: &Client,
    id: Option<String>,
    format: &str,
    folder: &Path,
    json: bool,
) -> Result<(), Error> {
    let ids: Vec<String> = match id {
        Some(id) => vec![id],
        None => {
            let all: Vec<ChatSummary> = read_answer(fetch_chats(client, None).await?)?;
            all.into_iter().map(|chat| chat.id).collect()
        }
    };
    let opened = open_folder(folder).map_err(|error| cannot_write(folder, &error))?;
    let extension = if format == "json" { "json" } else { "md" };
    for id in ids {
        let answer = client.get(&admin_path(&["chats", &id], &[])).await?;
        let chat: Chat = read_answer(answer.clone())?;
        let text = match extension {
            "json" => answer.to_string(),
            _ => export::markdown(&chat, false),
        };
        let path = write(&opened, folder, &export::file_name(&chat), extension, &text)?;
        let path = path.display().to_string();
        output::write_outcome(json, &json!({"file": path}), &path);
        let parts = chat.messages.iter().flat_map(|message| &message.parts);
        let files = parts.filter(|part| part.file().is_some()).count();
        if files > 0 {
            let names = match files {
                1 => "the name of 1 attached file, not the file".to_owned(),
                files => format!("the names of {files} attached files, not the files"),
            };
            output::error_line(&format!("{path} has {names}."));
        }
    }
    Ok(())
}

/// Creates and opens the folder that its path leads to now: all chats are saved there, whatever has the path later.
fn open_folder(folder: &Path) -> Result<OpenFile, IoError> {
    fs::create_dir_all(folder)?;
    tierbar_nofollow::open(&folder.canonicalize()?).map_err(IoError::other)
}

/// Writes a file of a folder with a name that no other has.
fn write(
    folder: &OpenFile,
    shown: &Path,
    name: &str,
    extension: &str,
    text: &str,
) -> Result<PathBuf, Error> {
    for number in 1_u32.. {
        let name = match number {
            1 => format!("{name}.{extension}"),
            _ => format!("{name} {number}.{extension}"),
        };
        let created = folder.create(OsStr::new(&name), Mode::from_raw_mode(0o666));
        let path = shown.join(name);
        match created.and_then(|mut file| file.write_all(text.as_bytes())) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot_write(&path, &error)),
        }
    }
    Err(Error::new(Code::Internal, "all file names are in use"))
}

fn cannot_write(path: &Path, error: &IoError) -> Error {
    let message = format!("{} cannot be written: {error}", path.display());
    Error::new(Code::Storage, message).hint("choose another folder with --output")
}

async fn import(client: &Client, files: &[PathBuf], json: bool) -> Result<(), Error> {
    for path in files {
        let mut file = Vec::new();
        named::open(path)?
            .read_to_end(&mut file)
            .map_err(|error| unreadable(&path.display().to_string(), &error))?;
        let sent = client.upload("/tierbar/v1/chats/import", file).await;
        let answer = sent.map_err(|error| {
            let message = format!("{}: {}", path.display(), error.message);
            Error { message, ..error }
        })?;
        output::write_answer(json, answer, |imported| {
            format!("{}: {}", path.display(), render_import(&imported))
        })?;
    }
    Ok(())
}

fn render_import(imported: &ChatImport) -> String {
    let chats = count(imported.chats, "chat");
    let mut text = format!("{chats} with {}", count(imported.messages, "message"));
    let known = imported.known;
    if known > 0 {
        let were = plural(known, "was", "were");
        text += &format!("; {known} {were} already here");
    }
    text += "\n";
    for Omission { what, count, why } in &imported.left_out {
        let what = describe_omission(*what, *count);
        text += &format!("  left out {count} {what}: {why}\n");
    }
    text
}

fn describe_omission(what: OmittedPart, count: u64) -> &'static str {
    match what {
        OmittedPart::UnknownChats => plural(count, "chat", "chats"),
        OmittedPart::LargeChats => plural(count, "large chat", "large chats"),
        OmittedPart::EmptyChats => plural(count, "empty chat", "empty chats"),
        OmittedPart::Images => plural(count, "image", "images"),
        OmittedPart::Files => plural(count, "attachment", "attachments"),
        OmittedPart::Tools => plural(count, "tool call or result", "tool calls and results"),
    }
}

fn plural(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

async fn delete(client: &Client, id: &str, json: bool) -> Result<(), Error> {
    client.delete(&admin_path(&["chats", id], &[])).await?;
    let sentence = format!(
        "Deleted the chat. For ten minutes, you can restore it with: tierbar chats restore {id}"
    );
    output::write_outcome(json, &json!({"id": id, "deleted": true}), &sentence);
    Ok(())
}

async fn restore(client: &Client, id: &str, json: bool) -> Result<(), Error> {
    let path = admin_path(&["chats", id, "restore"], &[]);
    let answer = client.post(&path, &json!({})).await?;
    output::write_answer(json, answer, |chat: ChatSummary| {
        format!("Restored \"{}\".\n", title(&chat))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_skip::race::{Found, LINKS, race};

    fn chat(more: &Value) -> ChatSummary {
        let mut chat = json!({
            "id": "1f", "title": "", "model": "auto", "created_at": "2026-11-26T08:15:00.000000Z",
            "updated_at": "2026-11-26T08:15:00.000000Z", "when_full": "refuse", "pinned": false, "turn": null,
        });
        for (name, value) in more.as_object().unwrap() {
            chat[name] = value.clone();
        }
        serde_json::from_value(chat).unwrap()
    }

    #[test]
    fn a_chat_is_listed_with_what_was_found() {
        assert_eq!(render_chat(&chat(&json!({}))), "1f  2026-11-26  New Chat");
        let found = json!({"message": 3, "excerpt": "…the Rhône\nflows…"});
        let found = json!({"title": "Rivers", "pinned": true, "found": found});
        assert_eq!(
            render_chat(&chat(&found)),
            "1f  2026-11-26  Rivers  (pinned)\n    …the Rhône flows…"
        );
    }

    #[test]
    fn an_export_replaces_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let opened = open_folder(folder.path()).unwrap();
        for (expected, text) in [("Rivers.md", "a"), ("Rivers 2.md", "b")] {
            let path = write(&opened, folder.path(), "Rivers", "md", text).unwrap();
            assert_eq!(path, folder.path().join(expected));
            assert_eq!(fs::read_to_string(path).unwrap(), text);
        }
        let error = write(&opened, folder.path(), "none/x", "md", "").unwrap_err();
        assert_eq!(error.code, Code::Storage);
    }

    #[test]
    fn an_export_stays_in_the_folder_that_it_began_in() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let opened = open_folder(&at("out")).unwrap();
        fs::rename(at("out"), at("moved")).unwrap();
        fs::create_dir(at("private")).unwrap();
        std::os::unix::fs::symlink(at("private"), at("out")).unwrap();
        write(&opened, &at("out"), "a", "md", "text").unwrap();
        assert_eq!(fs::read_to_string(at("moved/a.md")).unwrap(), "text");
        assert_eq!(fs::read_dir(at("private")).unwrap().count(), 0);
    }

    /// The folder may be a link. Where it leads as the export begins, all of it goes.
    #[test]
    fn an_export_is_never_divided_between_two_folders() {
        let root = tempfile::tempdir().unwrap();
        let (out, private) = (root.path().join("out"), root.path().join("private"));
        for folder in [&out, &private] {
            fs::create_dir(folder).unwrap();
        }
        let mut number = 0;
        let mut export = || {
            number += 1;
            let Ok(opened) = open_folder(&out) else {
                return Found::Refused;
            };
            let written = ["a", "b"].map(|title| {
                let name = format!("{number}{title}");
                write(&opened, &out, &name, "md", "text").is_ok()
            });
            let is_there = ["a", "b"].map(|title| {
                let name = format!("{number}{title}.md");
                let is_there = private.join(&name).exists();
                let _cleared = opened.remove(OsStr::new(&name));
                is_there
            });
            match (written, is_there) {
                ([true, true], [one, other]) if one == other => Found::Own,
                // The folder itself is gone.
                (_, [false, false]) => Found::Refused,
                _ => Found::Foreign,
            }
        };
        race(&LINKS, &out, &private, &mut [&mut export]);
    }

    #[test]
    fn an_import_is_summed_up_in_a_sentence() {
        let imported = ChatImport {
            chats: 1,
            messages: 2,
            known: 3,
            left_out: Vec::new(),
        };
        assert_eq!(
            render_import(&imported),
            "1 chat with 2 messages; 3 were already here\n"
        );
    }
}
