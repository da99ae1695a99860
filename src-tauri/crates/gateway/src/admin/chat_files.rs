//! Chats as files: exported for people and programs, and imported from here and from other programs.

use crate::admin::AdminState;
use axum::{
    Json,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{StreamExt, stream};
use memchr::memmem;
use serde::{
    Deserialize, Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{
    collections::{BTreeSet, HashMap},
    fmt, iter,
};
use tierbar_chats::{
    Chat,
    export::{self, ExportedChat},
    import::{self, ChatImport, ImportedChat, Omissions, OmittedPart},
};
use tierbar_core::{
    Code, Error, bad_request,
    json::{repair::repair, values_memory},
};
use tierbar_edge::keys::Weight;
use tierbar_fetch::blocking;
use tierbar_http::{Answer, error::Failure, path::Id, request::QueryFields};
use tierbar_inference::body;
pub(super) use tierbar_jobs::turns::hash_of;
use tierbar_store::{ImportedFile, Store};
use utoipa::{IntoParams, ToSchema};

/// Enough for the chats of years. The file is in memory while its chats and their files are read one by one.
const IMPORT_LIMIT: usize = 200 << 20;
/// More than anyone has, and few enough that where each one stands takes little memory.
const MOST_CHATS: usize = 100_000;
/// How much of a file is read before its chats are stored.
const BATCH: usize = 4 << 20;
/// The files of one chat, and the bytes of one of them in base64: no question can have a larger one.
const MOST_FILES: usize = 20_000;
const LARGEST_FILE: usize = 30 << 20;
/// How often a file is in memory while it is exported: as it is stored, and about twice in base64.
const FILE_COPIES: usize = 4;
const SPLIT: &str = "split the file into several";
const HINT: &str = "Tierbar reads its own exports, ChatGPT's conversations.json, Open WebUI's exports and LM Studio's \
                    *.conversation.json";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExportFormat {
    /// The branch that is shown, for people.
    #[default]
    Markdown,
    /// The whole chat with its files, which can be imported.
    Json,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Export {
    #[serde(default)]
    #[param(inline)]
    format: ExportFormat,
    /// Whether the Markdown has what models thought before they answered.
    #[serde(default)]
    reasoning: bool,
}

/// Returns a chat as a file, which `content-disposition` names.
#[utoipa::path(
    get,
    path = "/tierbar/v1/chats/{id}/export",
    operation_id = "exportChat",
    reach(Owner, Reads),
    params(("id" = String, Path, description = "The id of a chat"), Export),
    responses((status = 200, description = "The file: Markdown, in which attached files are named, or an `ExportedChat` as JSON", content((String = "text/markdown"), (ExportedChat = "application/json")))),
)]
pub(crate) async fn export(
    State(admin): AdminState,
    Id(id): Id,
    QueryFields(Export { format, reasoning }): QueryFields<Export>,
) -> Result<Response, Failure> {
    let mut weight = admin.jobs.charge_chat(&id, 0).await?;
    let mut chat = admin.store.chat(&id).await?;
    let name = export::file_name(&chat);
    let (mut response, extension) = match format {
        ExportFormat::Markdown => {
            let kind = [(header::CONTENT_TYPE, "text/markdown; charset=utf-8")];
            let text = blocking("the export", move || Ok(export::markdown(&chat, reasoning)));
            let text = text.await?;
            ((kind, text).into_response(), "md")
        }
        ExportFormat::Json => {
            weight.grow(largest_file(&chat).saturating_mul(FILE_COPIES))?;
            let kind = [(header::CONTENT_TYPE, "application/json")];
            // What a server said of a failure is not of the chat.
            for message in &mut chat.messages {
                message.answer.failure = None;
            }
            let body = export_body(admin.store.clone(), &chat)?;
            ((kind, body).into_response(), "json")
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_DISPOSITION, disposition(&name, extension));
    Ok(response.map(|body| weight.with(body)))
}

/// The bytes of a chat's largest file.
fn largest_file(chat: &Chat) -> usize {
    let parts = chat.messages.iter().flat_map(|message| &message.parts);
    let sizes = parts.filter_map(|part| Some(part.file()?.bytes));
    usize::try_from(sizes.max().unwrap_or_default()).unwrap_or(usize::MAX)
}

/// An [`ExportedChat`] as JSON. Its files, which may be many times as large as the chat, are read one by one.
fn export_body(store: Store, chat: &Chat) -> Result<Body, Error> {
    let mut json = serde_json::to_string(chat)
        .map_err(|error| Error::new(Code::Internal, format!("the chat as JSON: {error}")))?;
    let parts = chat.messages.iter().flat_map(|message| &message.parts);
    let hashes: BTreeSet<String> = parts
        .filter_map(|part| Some(part.file()?.sha256.clone()))
        .collect();
    if hashes.is_empty() {
        return Ok(json.into());
    }
    // The files come within the chat's braces.
    json.pop();
    json.push_str(",\"files\":{");
    let files = stream::iter(hashes.into_iter().enumerate()).then(move |(number, hash)| {
        let store = store.clone();
        async move {
            let mut files = store.attachments(vec![hash.clone()]).await?;
            let comma = if number == 0 { "" } else { "," };
            let data = BASE64_STANDARD.encode(files.remove(&hash).unwrap_or_default());
            Ok::<_, Error>(Bytes::from(format!("{comma}\"{hash}\":\"{data}\"")))
        }
    });
    let begin = stream::iter(iter::once(Ok(Bytes::from(json))));
    let end = stream::iter(iter::once(Ok(Bytes::from_static(b"}}"))));
    Ok(Body::from_stream(begin.chain(files).chain(end)))
}

/// The header that names a file (RFC 6266): in ASCII for old clients, and as it is.
fn disposition(name: &str, extension: &str) -> HeaderValue {
    let ascii = name.replace(
        |letter: char| !letter.is_ascii() || letter.is_ascii_control(),
        "_",
    );
    let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    // Form encoding writes a space as a plus, which is one here.
    let encoded = encoded.replace('+', "%20");
    let value = format!(
        "attachment; filename=\"{ascii}.{extension}\"; filename*=UTF-8''{encoded}.{extension}"
    );
    HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

/// Imports the chats of a file: of Tierbar, ChatGPT, Open WebUI or LM Studio.
///
/// A chat that is here already is not added again; it gets the messages that it has more in the file. What Tierbar cannot take, such as images, is counted with the reason.
#[utoipa::path(
    post,
    path = "/tierbar/v1/chats/import",
    operation_id = "importChats",
    reach(Owner, Writes, Streams),
    request_body(content = Object, description = "The file: a chat, or an array of chats"),
    responses((status = 200, description = "What was imported", body = ChatImport)),
)]
pub(crate) async fn import(State(admin): AdminState, body: Body) -> Answer<ChatImport> {
    let mut weight = admin.jobs.weigh_file();
    let file = body::collect(body, IMPORT_LIMIT, |more| weight.grow(more)).await;
    let file = file.map_err(|error| match error.code {
        Code::PayloadTooLarge => error.hint(SPLIT),
        _ => error,
    })?;
    let elements = split(file.clone()).await?;
    let (mut imported, mut omissions) = (ChatImport::default(), Omissions::default());
    for batch in batches(elements) {
        let read = read_batch(batch, &mut weight).await?;
        omissions.extend(read.omissions);
        let added = admin.store.import_chats(read.chats, read.files);
        let added = added.await?;
        weight.shrink_to(file.len());
        omissions.add(OmittedPart::LargeChats, added.too_large);
        imported.chats += added.chats;
        imported.messages += added.messages;
        imported.known += added.known;
    }
    imported.left_out = omissions.list();
    if imported.messages > 0 {
        admin.jobs.note_chat_change();
    }
    let unknown = |omission: &import::Omission| omission.what == OmittedPart::UnknownChats;
    if imported.chats + imported.known == 0 && imported.left_out.iter().all(unknown) {
        let error = bad_request("the file has no chats that Tierbar knows");
        return Err(error.hint(HINT).into());
    }
    Ok(Json(imported))
}

/// The chats of a file. Nothing is imported of a file that breaks off.
async fn split(file: Bytes) -> Result<Vec<Bytes>, Error> {
    // Some programs write a byte-order mark first.
    let file = match file.strip_prefix(b"\xef\xbb\xbf") {
        Some(json) => file.slice_ref(json),
        None => file,
    };
    blocking("the import", move || {
        serde_json::from_slice::<IgnoredAny>(&file)
            .map_err(|error| bad_request(format!("the file is not JSON: {error}")).hint(HINT))?;
        let elements = import::elements(&file, MOST_CHATS).ok_or_else(|| {
            let message = "the file has more than 100,000 chats";
            Error::new(Code::PayloadTooLarge, message).hint(SPLIT)
        })?;
        let elements = elements.into_iter();
        Ok(elements.map(|element| file.slice_ref(element)).collect())
    })
    .await
}

/// Groups chats that are stored together.
fn batches(elements: Vec<Bytes>) -> Vec<Vec<Bytes>> {
    let mut batches: Vec<Vec<Bytes>> = Vec::new();
    let mut size = 0;
    for element in elements {
        size += element.len();
        match batches.last_mut() {
            Some(batch) if size <= BATCH => batch.push(element),
            _ => {
                size = element.len();
                batches.push(vec![element]);
            }
        }
    }
    batches
}

/// The chats of a part of a file.
#[derive(Default)]
struct Batch {
    chats: Vec<ImportedChat>,
    /// Those of their messages, by hash.
    files: HashMap<String, ImportedFile>,
    omissions: Omissions,
}

/// A chat that Tierbar has exported, as far as its files are concerned.
#[derive(Debug, Deserialize)]
struct WithFiles<'a> {
    #[serde(borrow)]
    files: &'a RawValue,
}

/// Takes the files of this chat, by hash. One that is not what its hash says is none.
struct FilesOf<'a>(&'a Bytes);

impl<'de> Visitor<'de> for FilesOf<'_> {
    type Value = HashMap<String, Bytes>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("files by their hashes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut files = HashMap::new();
        while let Some((hash, data)) = entries.next_entry::<&str, &RawValue>()? {
            let data = data.get().trim_matches('"');
            if files.len() < MOST_FILES && data.len() <= LARGEST_FILE {
                let data = self.0.slice_ref(data.as_bytes());
                if hash_of(&decode(&data)) == hash {
                    files.insert(hash.to_owned(), data);
                }
            }
        }
        Ok(files)
    }
}

/// Returns the files that a chat contains.
fn files_of(json: &Bytes) -> HashMap<String, Bytes> {
    // A large chat without files is not parsed for them. The name may be written with escapes.
    let has = |text: &[u8]| memmem::find(json, text).is_some();
    if !has(b"\"files\"") && !has(b"\\u") {
        return HashMap::new();
    }
    // What other programs call so has another form.
    let files = serde_json::from_slice::<WithFiles<'_>>(json);
    let files = files.and_then(|WithFiles { files }| {
        serde_json::Deserializer::from_str(files.get()).deserialize_map(FilesOf(json))
    });
    files.unwrap_or_default()
}

/// Returns the bytes of a file; none for what is not base64.
fn decode(data: &Bytes) -> Vec<u8> {
    let decoded = BASE64_STANDARD.decode(data).or_else(|_| {
        // JSON may escape a slash.
        let plain: Vec<u8> = data.iter().copied().filter(|byte| *byte != b'\\').collect();
        BASE64_STANDARD.decode(plain)
    });
    decoded.unwrap_or_default()
}

async fn read_batch(elements: Vec<Bytes>, weight: &mut Weight) -> Result<Batch, Error> {
    let (mut texts, mut most) = (0, 0);
    for json in &elements {
        let memory = values_memory(json).saturating_add(json.len() * 4);
        // One chat at a time is read and repaired, and the texts of all are kept.
        most = memory.min(import::MEMORY).max(most);
        texts += json.len();
    }
    weight.grow(most + texts.min(import::MEMORY))?;
    blocking("the import", move || {
        let mut batch = Batch::default();
        for json in elements {
            let json = repair(&json).map_or(json, Bytes::from);
            let files = files_of(&json);
            let hashes: BTreeSet<String> = files.keys().cloned().collect();
            let chat = import::read(&json, &hashes, &mut batch.omissions);
            if chat.is_some() {
                batch.files.extend(files.into_iter().map(|(hash, data)| {
                    let read: ImportedFile = Box::new(move || decode(&data));
                    (hash, read)
                }));
            }
            batch.chats.extend(chat);
        }
        Ok(batch)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, json, text};
    use serde_json::{Value, json};

    #[test]
    fn a_header_names_a_file_in_any_script() {
        assert_eq!(
            disposition("Zürich 2026", "md"),
            "attachment; filename=\"Z_rich 2026.md\"; filename*=UTF-8''Z%C3%BCrich%202026.md"
        );
    }

    #[test]
    fn chats_are_stored_in_batches() {
        let large = BATCH / 2 + 1;
        let elements = [10, 10, large, large].map(|size| Bytes::from(vec![b'1'; size]));
        let sizes: Vec<_> = batches(elements.into()).iter().map(Vec::len).collect();
        assert_eq!(sizes, [3, 1]);
        assert!(batches(Vec::new()).is_empty());
    }

    #[test]
    fn files_are_found_by_an_escaped_name() {
        let (hash, data) = (hash_of(b"a"), BASE64_STANDARD.encode("a"));
        for (name, count) in [("files", 1), ("\\u0066iles", 1), ("file", 0)] {
            let chat = format!("{{\"{name}\":{{\"{hash}\":\"{data}\"}}}}");
            assert_eq!(files_of(&chat.into()).len(), count, "{name}");
        }
    }

    #[tokio::test]
    async fn an_exported_chat_can_be_imported_elsewhere() {
        let bench = Bench::new("127.0.0.1:11435").await;
        let title = json!({"title": "Rivers"}).to_string();
        let made = json(bench.ask("POST", "/tierbar/v1/chats", title).await).await;
        let path = format!("/tierbar/v1/chats/{}", made["id"].as_str().unwrap());
        for (role, content) in [("user", "Which?"), ("assistant", "The Rhône.")] {
            let message = json!({"role": role, "content": content, "tier": "fast"}).to_string();
            let messages = format!("{path}/messages");
            let added = bench.ask("POST", &messages, message);
            assert_eq!(added.await.status(), 201);
        }
        let file = bench
            .ask("GET", &format!("{path}/export?format=markdown"), "")
            .await;
        let name = file.headers()["content-disposition"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(name.contains("filename=\"Rivers.md\""), "{name}");
        let markdown = text(file).await;
        assert!(
            markdown.contains("## Answer (fast)\n\n> The Rhône.\n"),
            "{markdown}"
        );
        let file = text(
            bench
                .ask("GET", &format!("{path}/export?format=json"), "")
                .await,
        )
        .await;

        let elsewhere = Bench::new("127.0.0.1:11435").await;
        let import = async |body: String| {
            let answer = elsewhere
                .ask("POST", "/tierbar/v1/chats/import", body)
                .await;
            (answer.status().as_u16(), json(answer).await)
        };
        let (status, imported) = import(file.clone()).await;
        assert_eq!(
            (status, &imported["chats"], &imported["messages"]),
            (200, &json!(1), &json!(2))
        );
        let (_, again) = import(file).await;
        assert_eq!((&again["chats"], &again["known"]), (&json!(0), &json!(1)));
        let found = elsewhere
            .ask("GET", "/tierbar/v1/chats?search=rhone", "")
            .await;
        let found: Value = json(found).await;
        assert_eq!(found["chats"][0]["title"], "Rivers");
        assert_eq!(found["chats"][0]["found"]["excerpt"], "The Rhône.");

        for wrong in ["", "[", "{}", "[1, 2]", r#"{"messages": []}"#] {
            let (status, error) = import(wrong.to_owned()).await;
            assert_eq!(status, 400, "{wrong}");
            assert!(
                error["error"]["hint"].as_str().unwrap().contains("ChatGPT"),
                "{wrong}"
            );
        }
    }

    #[tokio::test]
    async fn an_exported_chat_contains_its_files() {
        let bench = Bench::new("127.0.0.1:11435").await;
        let made = json(bench.ask("POST", "/tierbar/v1/chats", "{}").await).await;
        let id = made["id"].as_str().unwrap();
        let parts = json!([
            {"type": "file", "name": "a.txt", "media_type": "text/plain", "text": "abc"},
            {"type": "image", "name": "b.png", "media_type": "image/png", "data": "/9g="},
        ]);
        let question = json!({"text": "?", "parts": parts}).to_string();
        let path = format!("/tierbar/v1/chats/{id}");
        // The tier does not answer; its question is stored.
        let begun = bench.ask("POST", &format!("{path}/turns"), question).await;
        assert_eq!(begun.status(), 201);
        let export = format!("{path}/export?format=json");
        let file = text(bench.ask("GET", &export, "").await).await;
        let exported: ExportedChat = serde_json::from_str(&file).unwrap();
        let mut files: Vec<_> = exported.files.values().map(String::as_str).collect();
        files.sort_unstable();
        assert_eq!(files, ["/9g=", "YWJj"]);

        let elsewhere = Bench::new("127.0.0.1:11435").await;
        // What is not what its hash says is left out.
        let broken = file.replace("\"/9g=\"", "\"/9k=\"");
        let import = "/tierbar/v1/chats/import";
        let imported = json(elsewhere.ask("POST", import, broken).await).await;
        assert_eq!(imported["left_out"][0]["what"], "images", "{imported}");
        let listed = json(elsewhere.ask("GET", "/tierbar/v1/chats", "").await).await;
        let copy = listed["chats"][0]["id"].as_str().unwrap();
        let export = format!("/tierbar/v1/chats/{copy}/export?format=json");
        let copy = text(elsewhere.ask("GET", &export, "").await).await;
        let copy: ExportedChat = serde_json::from_str(&copy).unwrap();
        let files: Vec<_> = copy.files.into_values().collect();
        assert_eq!(files, ["YWJj"]);
        let parts = &copy.chat.messages[0].parts;
        assert_eq!(parts[0].file().unwrap().name, "a.txt");

        // JSON may escape a slash.
        let third = Bench::new("127.0.0.1:11435").await;
        let escaped = file.replace("\"/9g=\"", "\"\\/9g=\"");
        let imported = json(third.ask("POST", import, escaped).await).await;
        assert_eq!(imported["left_out"], json!([]), "{imported}");
    }

    #[tokio::test]
    async fn a_file_may_be_larger_than_other_bodies() {
        let bench = Bench::new("127.0.0.1:11435").await;
        let chat = json!({"name": "Rivers", "messages": [
            {"currentlySelected": 0, "versions": [{"role": "user", "content": [{"type": "text", "text": "Which?"}]}]},
        ]});
        // More values than one request may have, and more bytes.
        let (others, spaces) = ("{},".repeat(90_000), " ".repeat(31 << 20));
        let file = format!("[{others}{chat}]{spaces}");
        let answer = bench.ask("POST", "/tierbar/v1/chats/import", file).await;
        assert_eq!(answer.status(), 200);
        let imported = json(answer).await;
        assert_eq!(imported["chats"], 1, "{imported}");
        assert_eq!(imported["left_out"][0]["count"], 90_000, "{imported}");
        let many = format!("[{}1]", "1,".repeat(MOST_CHATS));
        let answer = bench.ask("POST", "/tierbar/v1/chats/import", many).await;
        assert_eq!(answer.status(), 413);
        let error = json(answer).await["error"].take();
        assert_eq!(error["message"], "the file has more than 100,000 chats");
        assert_eq!(error["hint"], SPLIT);
        let unsigned = bench.post("/tierbar/v1/chats/import", "[]").await;
        assert_eq!(unsigned.status(), 401);
        assert_eq!(bench.keys.held(), 0);
    }
}
