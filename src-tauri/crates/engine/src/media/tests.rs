use super::*;

const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R',
];

fn address(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn message(parts: &[Value]) -> Vec<Value> {
    vec![json!({"role": "user", "content": parts})]
}

#[test]
fn media_files_keep_their_order() {
    let sound =
        json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}});
    let text = json!({"type": "text", "text": "and"});
    let mut messages = message(&[address("data:image/png;base64,AAEC"), text.clone(), sound]);
    messages.push(json!({"role": "assistant", "content": "plain"}));
    let sent = take_files(&mut messages, "<m>").unwrap();
    assert_eq!(
        sent,
        [
            MediaFile::Image(vec![0, 1, 2]),
            MediaFile::Sound(b"RIFF".to_vec())
        ]
    );
    let marker = json!({"type": "media_marker", "text": "<m>"});
    assert_eq!(messages[0]["content"], json!([marker, text, marker]));
    assert_eq!(messages[1]["content"], "plain");
}

#[test]
fn invalid_media_parts_are_named() {
    let long = format!("data:image/png;base64,{}", "A".repeat(LARGEST / 3 * 4 + 8));
    let many: Vec<_> = (0..17)
        .map(|_| address("data:image/png;base64,AAEC"))
        .collect();
    for (parts, expected) in [
        (
            vec![address("https://example.org/a.png")],
            "nothing is fetched",
        ),
        (vec![address("file:///etc/passwd")], "nothing is fetched"),
        (vec![address("data:image/png,AAEC")], "not in base64"),
        (vec![address("data:image/png;base64,A*EC")], "base64"),
        (vec![address("data:image/png;base64,AAE")], "base64"),
        (vec![address(&long)], "the maximum is"),
        (many, "more than 16"),
        (vec![json!({"type": "image_url"})], "no `url`"),
        (
            vec![json!({"type": "input_audio", "input_audio": {}})],
            "no `data`",
        ),
    ] {
        let error = take_files(&mut message(&parts), "<m>").unwrap_err();
        assert_eq!(error.code, Code::BadRequest);
        assert!(error.message.contains(expected), "{}", error.message);
    }
}

#[test]
fn oversized_and_unknown_images_are_refused_early() {
    // The header announces 60,000 × 60,000 pixels.
    let mut bomb = PNG.to_vec();
    bomb.extend(60_000_u32.to_be_bytes().repeat(2));
    bomb.extend([8, 2, 0, 0, 0]);
    let crc = bomb[12..].iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    });
    bomb.extend((!crc).to_be_bytes());
    // The reader needs the start of the pixels.
    bomb.extend([0, 0, 0, 0, b'I', b'D', b'A', b'T', 0x35, 0xaf, 0x06, 0x1e]);
    let error_of = |file: &[u8]| {
        file::decode_image(file, &mut MOST_PIXELS.clone())
            .unwrap_err()
            .message
    };
    assert!(
        error_of(&bomb).contains("60000 × 60000"),
        "{}",
        error_of(&bomb)
    );
    assert!(error_of(b"hello").contains("unknown format"));
    assert!(error_of(b"").contains("unknown format"));
    assert!(error_of(b"<svg xmlns='http://www.w3.org/2000/svg'/>").contains("unknown format"));
    assert!(error_of(PNG).contains("cannot be read"));
}

#[test]
fn stand_ins_are_unique_per_file_and_row() {
    let places: Vec<RowPositions> = (0..300).map(|row| [row; 4]).collect();
    let made = |projector, id: &str, nth| {
        stand_ins_of(projector, &(id.to_owned(), nth), &places, 300).unwrap()
    };
    let of = |id, nth| made("p", id, nth);
    let one = of("a", 0);
    assert!(one.iter().all(|&token| token < 0));
    assert_eq!(of("a", 0), one);
    let differ = |other: &[Token]| one.iter().zip(other).filter(|(a, b)| a == b).count() < 3;
    assert!(differ(&of("b", 0)));
    assert!(differ(&of("a", 1)));
    assert!(differ(&made("q", "a", 0)));
    let mut distinct = one.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > 297);
    let smaller = stand_ins_of("p", &("a".to_owned(), 0), &places[..200], 200).unwrap();
    assert!(differ(&smaller));
    let falling = [[1; 4], [0; 4]];
    let refused = stand_ins_of("p", &("a".to_owned(), 0), &falling, 2).unwrap_err();
    assert_eq!(refused.code, Code::ModelUnsupported);
}

#[test]
fn the_most_recent_rows_are_kept_within_the_limit() {
    let mut kept = RowCache::default();
    let key = |nth| ("file".to_owned(), nth);
    let rows: Arc<[f32]> = vec![0.0; KEPT_BYTES / 4 / 3].into();
    for nth in 0..3 {
        kept.put(key(nth), Arc::clone(&rows));
    }
    assert!(kept.get(&key(0)).is_some());
    kept.put(key(3), Arc::clone(&rows));
    assert!(kept.get(&key(1)).is_none());
    assert!([0, 2, 3].iter().all(|&nth| kept.get(&key(nth)).is_some()));
    // Created twice at the same time, counted once.
    kept.put(key(3), Arc::clone(&rows));
    assert!([0, 2, 3].iter().all(|&nth| kept.get(&key(nth)).is_some()));
    assert!(kept.bytes() <= KEPT_BYTES);
}
