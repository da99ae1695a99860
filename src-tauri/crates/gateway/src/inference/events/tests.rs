use super::*;
use serde_json::json;

/// What a server's chunks are read as.
pub(crate) fn events_of(chunks: impl IntoIterator<Item = Value>) -> Vec<Event> {
    let mut decoder = Decoder::default();
    for chunk in chunks {
        assert!(
            !decoder
                .read(format!("data: {chunk}\n\n").as_bytes())
                .unwrap()
        );
    }
    assert!(decoder.read(b"data: [DONE]\n\n").unwrap());
    decoder.events.into()
}

/// What a complete answer is read as.
pub(crate) fn gathered(answer: &Value) -> Gathered {
    let mut decoder = Decoder::default();
    decoder.read_whole(answer.to_string().as_bytes()).unwrap();
    let mut whole = Gathered::default();
    for event in decoder.events {
        assert_eq!(whole.add(event), None);
    }
    whole
}

/// The last event of an answer that breaks off.
pub(crate) fn failed(error: Error) -> Event {
    Event::Failed(Failed {
        error,
        status: None,
        may_wait: false,
        source: Source::default(),
    })
}

const STREAM: &str = ": loading\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"Grüße\"}}]}\r\n\r\ndata: no json\n\n";

fn finished(reason: &str) -> Event {
    Event::Finished {
        reason: reason.to_owned(),
        stop: None,
    }
}

/// Reads a stream in pieces of this size.
fn read(stream: &str, piece: usize) -> (Vec<Event>, Result<bool, Error>) {
    let mut decoder = Decoder::default();
    let mut pieces = stream.as_bytes().chunks(piece);
    let end = pieces.find_map(|piece| match decoder.read(piece) {
        Ok(false) => None,
        end => Some(end),
    });
    (decoder.events.into(), end.unwrap_or(Ok(false)))
}

#[test]
fn a_stream_is_read_however_it_is_cut() {
    let begun = [
        Event::Progress(Stage::Prefill),
        Event::Text("Grüße".to_owned()),
    ];
    for piece in 1..=STREAM.len() {
        let stream = format!("{STREAM}data: [DONE]\n\ndata: more\n\n");
        let (events, end) = read(&stream, piece);
        assert_eq!(end, Ok(true));
        assert_eq!(events, [&begun[..], &[finished("stop")]].concat());
    }
}

#[test]
fn an_error_within_a_stream_is_its_end() {
    let stream =
        format!("{STREAM}data: {{\"error\":{{\"message\":\"gone\"}}}}\n\ndata: [DONE]\n\n");
    let (events, end) = read(&stream, 7);
    assert_eq!(
        (events.len(), end.unwrap_err().message.as_str()),
        (2, "gone")
    );
}

#[test]
fn a_chunk_that_cannot_be_read_is_the_end_and_no_gap() {
    let odd = format!("{STREAM}data: {{\"choices\":[7]}}\n\ndata: [DONE]\n\n");
    let error = read(&odd, 7).1.unwrap_err();
    assert_eq!(error.code, Code::Unreachable);
    assert!(error.message.starts_with("the model's server did not"));
}

#[test]
fn a_stream_that_is_cut_off_is_complete_only_with_a_reason() {
    let mut cut = Decoder::default();
    cut.read(STREAM.as_bytes()).unwrap();
    let error = cut.end().unwrap_err();
    assert!(error.message.starts_with("the answer ended"), "{error}");
    let last = json!({"choices": [{"delta": {}, "finish_reason": "length"}]});
    cut.read(format!("data: {last}\n\n").as_bytes()).unwrap();
    cut.end().unwrap();
    assert_eq!(cut.events.back(), Some(&finished("length")));
}

#[test]
fn a_stream_without_an_end_is_ended() {
    let mut decoder = Decoder::default();
    let piece = vec![b' '; 4 << 20];
    let error = (0..=64).find_map(|_| decoder.read(&piece).err()).unwrap();
    assert_eq!(error.message, "the answer is longer than 256 MiB");
}

#[test]
fn a_chunks_figures_and_model_come_before_its_text() {
    let first = json!({
        "model": "small", "tierbar": {"chain": "night"}, "usage": {"prompt_tokens": 7},
        "choices": [{"delta": {"content": "a"}, "logprobs": {"content": []}}],
    });
    let second = json!({
        "model": "other", "usage": {"prompt_tokens": 7},
        "choices": [{"delta": {}, "finish_reason": "stop", "stop_reason": "END"}],
    });
    let usage = Usage {
        prompt_tokens: 7,
        ..Usage::default()
    };
    assert_eq!(
        events_of([first, second]),
        [
            Event::Chain(json!({"chain": "night"})),
            Event::Usage(usage),
            Event::Model("small".to_owned()),
            Event::LogProbs(json!({"content": []})),
            Event::Text("a".to_owned()),
            Event::Finished {
                reason: "stop".to_owned(),
                stop: Some("END".to_owned()),
            },
        ]
    );
}

#[test]
fn of_several_answers_the_first_is_read() {
    let choice = |text: &str| json!({"message": {"content": text}});
    let whole = gathered(&json!({"choices": [choice("a"), choice("b")]}));
    assert_eq!(whole.text, "a");
}
