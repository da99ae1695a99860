//! Images: Ollama's are bare base64, OpenAI's say what they are.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::{Value, json};
use tierbar_core::{Error, bad_request};

/// Base64 of which a part is looked at: what that leaves over says nothing.
const START: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
/// Twelve bytes, which is as far as a kind's mark reaches.
const MARK: usize = 16;

/// A text with images as a message's content; the text alone without any.
///
/// # Errors
/// `BadRequest` for what is no image of a kind that is known.
pub fn content(text: &str, images: &[String]) -> Result<Value, Error> {
    if images.is_empty() {
        return Ok(text.into());
    }
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(json!({"type": "text", "text": text}));
    }
    for (index, image) in images.iter().enumerate() {
        let url = uri(image).ok_or_else(|| {
            bad_request(format!(
                "image {} is not a base64-encoded PNG, JPEG, GIF, WebP or BMP file",
                index + 1
            ))
        })?;
        parts.push(json!({"type": "image_url", "image_url": {"url": url}}));
    }
    Ok(parts.into())
}

fn uri(image: &str) -> Option<String> {
    if image.starts_with("data:image/") {
        return Some(image.to_owned());
    }
    let start = image.as_bytes().get(..MARK).unwrap_or(image.as_bytes());
    let kind = kind(&START.decode(start).ok()?)?;
    Some(format!("data:image/{kind};base64,{image}"))
}

fn kind(start: &[u8]) -> Option<&'static str> {
    let begins = |mark: &[u8]| start.starts_with(mark);
    match () {
        () if begins(b"\x89PNG\r\n\x1a\n") => Some("png"),
        () if begins(b"\xff\xd8\xff") => Some("jpeg"),
        () if begins(b"GIF8") => Some("gif"),
        () if begins(b"RIFF") && start.get(8..12) == Some(b"WEBP") => Some("webp"),
        () if begins(b"BM") => Some("bmp"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::BASE64_STANDARD;

    #[test]
    fn an_image_is_told_by_its_first_bytes() {
        for (start, kind) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "jpeg"),
            (b"GIF89a", "gif"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "webp"),
            (b"BM\x36\x84\x03", "bmp"),
        ] {
            let image = BASE64_STANDARD.encode(start);
            let reply = content("", std::slice::from_ref(&image)).unwrap();
            let uri = format!("data:image/{kind};base64,{image}");
            assert_eq!(
                reply,
                json!([{"type": "image_url", "image_url": {"url": uri}}])
            );
        }
    }

    #[test]
    fn what_is_no_image_is_refused_by_its_place() {
        let png = BASE64_STANDARD.encode(b"\x89PNG\r\n\x1a\n");
        for wrong in [
            "",
            "hello",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
            "UklGRiQAAABXQVZF",
            "/tmp/cat.png",
        ] {
            let images = [png.clone(), wrong.to_owned()];
            let error = content("look", &images).unwrap_err();
            assert!(error.message.starts_with("image 2 is not"), "{error}");
        }
    }

    #[test]
    fn typed_parts_stay_and_text_without_images_is_a_string() {
        let uri = "data:image/png;base64,AAAA".to_owned();
        assert_eq!(
            content("look", std::slice::from_ref(&uri)).unwrap(),
            json!([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": uri}}])
        );
        assert_eq!(content("look", &[]).unwrap(), json!("look"));
    }
}
