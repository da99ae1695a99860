//! `tierbar triage|compress|summarize|brief`: runs a task on a file or on stdin.

use crate::{client::Client, output, reading};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::Error;

/// The largest input that the API accepts.
const MAX_BYTES: u64 = 30 << 20;
/// So many bytes tell an image or a sound.
const HEAD: u64 = 16;

#[derive(Debug, clap::Args)]
struct Input {
    /// File to read [default: stdin]
    file: Option<PathBuf>,
    /// Tier or model to use [default: the task's usual tier]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Print the full answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Triage {
    #[command(flatten)]
    input: Input,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Compress {
    /// Maximum length of the result, in words
    #[arg(long)]
    words: u32,
    #[command(flatten)]
    input: Input,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Summarize {
    /// Maximum length of the result, in words [default: 200]
    #[arg(long)]
    words: Option<u32>,
    #[command(flatten)]
    input: Input,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Brief {
    /// Maximum length of the result, in words [default: 150]
    #[arg(long)]
    words: Option<u32>,
    /// Print an e-mail header with subject, type and urgency above the brief
    #[arg(long, conflicts_with = "json")]
    email: bool,
    #[command(flatten)]
    input: Input,
}

pub(crate) async fn triage(home: Option<PathBuf>, args: Triage) -> Result<(), Error> {
    let answer = run(home, "triage", "text", None, &args.input).await?;
    print(args.input.json, &answer, |answer| {
        let cloud = if answer["needs_cloud"] == true {
            "needs a larger model"
        } else {
            "needs no cloud"
        };
        let (kind, why) = (field(answer, "type"), field(answer, "why"));
        format!("{kind}, urgency {}, {cloud}: {why}", answer["urgency"])
    });
    Ok(())
}

pub(crate) async fn compress(home: Option<PathBuf>, args: Compress) -> Result<(), Error> {
    let answer = run(home, "compress", "text", Some(args.words), &args.input).await?;
    print(args.input.json, &answer, |answer| field(answer, "text"));
    note_fallback(&answer, "sentences of the text, chosen by rule");
    let missing = answer["missing"].as_array().into_iter().flatten();
    let missing: Vec<_> = missing.filter_map(Value::as_str).collect();
    if !missing.is_empty() {
        output::error_line(&format!("missing from the result: {}", missing.join("; ")));
    }
    if answer["fits"] == false {
        let (words, limit) = (&answer["words"], args.words);
        output::error_line(&format!(
            "the result has {words} words; the limit is {limit}"
        ));
    }
    Ok(())
}

pub(crate) async fn summarize(home: Option<PathBuf>, args: Summarize) -> Result<(), Error> {
    let answer = run(home, "summarize", "text", args.words, &args.input).await?;
    print(args.input.json, &answer, |answer| field(answer, "summary"));
    note_fallback(&answer, "sentences of the text, chosen by rule");
    Ok(())
}

pub(crate) async fn brief(home: Option<PathBuf>, args: Brief) -> Result<(), Error> {
    let answer = run(home, "brief", "lines", args.words, &args.input).await?;
    print(args.input.json, &answer, |answer| {
        let (header, brief) = (field(answer, "header"), field(answer, "brief"));
        if args.email {
            format!("{header}\n{brief}")
        } else {
            brief
        }
    });
    note_fallback(&answer, "the counts themselves");
    let malformed = answer["aggregate"]["malformed"].as_u64().unwrap_or(0);
    if malformed > 0 {
        let first = &answer["aggregate"]["first_malformed"];
        output::error_line(&format!(
            "ignored {malformed} malformed lines; the first is line {first}"
        ));
    }
    Ok(())
}

/// Says what the result is if no model wrote it.
fn note_fallback(answer: &Value, instead: &str) {
    if answer["fallback"] == true {
        output::error_line(&format!(
            "the model gave no usable answer; these are {instead}"
        ));
    }
}

async fn run(
    home: Option<PathBuf>,
    task: &str,
    field: &str,
    words: Option<u32>,
    input: &Input,
) -> Result<Value, Error> {
    let mut read = reading::Input::open(input.file.as_deref())?;
    let content = match medium(&read.head(HEAD)?) {
        // Tasks that take text only say so.
        Some(medium) => json!([media_part(&medium, &read.bytes(MAX_BYTES)?)]),
        None => read.text(MAX_BYTES).await?.into(),
    };
    let mut body = json!({field: content});
    if let Some(model) = &input.model {
        body["model"] = model.as_str().into();
    }
    if let Some(words) = words {
        body["words"] = words.into();
    }
    let client = Client::running_or_own(home).await?;
    let answer = client.post(&format!("/v1/{task}"), &body).await;
    client.close().await;
    answer
}

/// Returns whether a file is an image or a sound, by its first bytes, and its format.
fn medium(head: &[u8]) -> Option<(bool, &'static str)> {
    let begins = |mark: &[u8]| head.starts_with(mark);
    let is_riff = |kind: &[u8]| begins(b"RIFF") && head.get(8..12) == Some(kind);
    let sound = match head {
        _ if is_riff(b"WAVE") => Some("wav"),
        _ if begins(b"ID3") => Some("mp3"),
        // A frame of layer III; a text in UTF-16 begins alike.
        [0xff, second, ..] if second & 0xe6 == 0xe2 => Some("mp3"),
        _ => None,
    };
    let image = match head {
        _ if begins(b"\x89PNG\r\n\x1a\n") => Some("png"),
        _ if begins(b"\xff\xd8\xff") => Some("jpeg"),
        _ if begins(b"GIF87a") || begins(b"GIF89a") => Some("gif"),
        _ if is_riff(b"WEBP") => Some("webp"),
        // Words begin with these letters too; four bytes behind the file's size are always 0.
        _ if begins(b"BM") && head.get(6..10) == Some(&[0; 4]) => Some("bmp"),
        _ => None,
    };
    let sound = sound.map(|format| (false, format));
    sound.or_else(|| image.map(|format| (true, format)))
}

/// Returns an image or a sound as a part of a message in OpenAI's form.
fn media_part(&(is_image, format): &(bool, &str), bytes: &[u8]) -> Value {
    let data = BASE64_STANDARD.encode(bytes);
    if is_image {
        let url = format!("data:image/{format};base64,{data}");
        json!({"type": "image_url", "image_url": {"url": url}})
    } else {
        json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
    }
}

fn field(answer: &Value, name: &str) -> String {
    answer[name].as_str().unwrap_or_default().to_owned()
}

fn print(as_json: bool, answer: &Value, text: impl Fn(&Value) -> String) {
    if as_json {
        output::write_line(&answer.to_string());
    } else {
        // An answer may contain terminal escape sequences.
        let text = text(answer);
        output::write_line(&text.replace(|c: char| c.is_control() && c != '\n', " "));
    }
}

#[cfg(test)]
mod tests {
    use super::{media_part, medium};

    #[test]
    fn images_and_sound_are_recognized_by_their_contents() {
        for (start, kind) in [
            (
                &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
                "data:image/png;base64,iVBOR",
            ),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "data:image/jpeg;base64,"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "data:image/webp;base64,"),
            (b"BM\x36\x84\x03\0\0\0\0\0\x36", "data:image/bmp;base64,"),
            (b"RIFF\x24\0\0\0WAVEfmt ", r#""format":"wav""#),
            (b"ID3\x04\0\0", r#""format":"mp3""#),
            (b"\xff\xfb\x90\x64", r#""format":"mp3""#),
        ] {
            let part = media_part(&medium(start).unwrap(), start).to_string();
            assert!(part.contains(kind), "{part}");
        }
        for text in [
            &b"BMW is a maker of cars"[..],
            b"RIFF is a format",
            b"\xff\xfeH\0i\0",
            b"GIF files",
            b"",
        ] {
            assert_eq!(medium(text), None, "{text:?}");
        }
    }
}
