use super::*;
use crate::{
    caller::Caller,
    charge::Charge,
    metrics::Metrics,
    original::Form,
    speed::SpeedMeter,
    stream_meter::{StreamMeter, StreamReading},
};
use serde_json::json;
use std::time::Instant;
use tierbar_core::{ModelId, TierId};

/// A stream of chunks that is read.
struct Stream {
    meter: StreamMeter,
    decoder: Decoder,
}

impl Default for Stream {
    fn default() -> Self {
        let answering = SpeedMeter::default().begin(&ModelId("small".to_owned()));
        let counted = Metrics::default().answer(&TierId::new("fast").unwrap(), Instant::now());
        let charge = Charge::new(Caller::default(), 0).attempt();
        let meter = StreamMeter::new(answering, counted, charge);
        Self {
            meter: meter.reading(Form::Chat, StreamReading::Chunks),
            decoder: Decoder::default(),
        }
    }
}

impl Stream {
    fn read(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let passing = self.meter.pass(bytes.to_vec().into());
        self.decoder.read(passing.len(), self.meter.take_lines())
    }
}

/// What a server's chunks are read as.
fn events_of(chunks: impl IntoIterator<Item = Value>) -> Vec<Event> {
    let mut stream = Stream::default();
    for chunk in chunks {
        assert!(
            !stream
                .read(format!("data: {chunk}\n\n").as_bytes())
                .unwrap()
        );
    }
    assert!(stream.read(b"data: [DONE]\n\n").unwrap());
    stream.decoder.events.into()
}

/// What a complete answer is read as.
fn gathered(answer: &Value) -> CompleteAnswer {
    let mut decoder = Decoder::default();
    decoder
        .read_whole(answer.to_string().into(), Vec::new())
        .unwrap();
    let mut whole = CompleteAnswer::default();
    for event in decoder.events {
        assert_eq!(whole.add(event), None);
    }
    whole
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
    let mut read = Stream::default();
    let mut pieces = stream.as_bytes().chunks(piece);
    let end = pieces.find_map(|piece| match read.read(piece) {
        Ok(false) => None,
        end => Some(end),
    });
    (read.decoder.events.into(), end.unwrap_or(Ok(false)))
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
    let mut cut = Stream::default();
    cut.read(STREAM.as_bytes()).unwrap();
    let error = cut.decoder.end().unwrap_err();
    assert!(error.message.starts_with("the answer ended"), "{error}");
    let last = json!({"choices": [{"delta": {}, "finish_reason": "length"}]});
    cut.read(format!("data: {last}\n\n").as_bytes()).unwrap();
    cut.decoder.end().unwrap();
    assert_eq!(cut.decoder.events.back(), Some(&finished("length")));
}

#[test]
fn a_stream_without_an_end_is_ended() {
    let mut decoder = Decoder::default();
    let error = (0..=64).find_map(|_| decoder.read(4 << 20, Vec::new()).err());
    let error = error.unwrap();
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

#[test]
fn text_that_a_server_breaks_arrives_or_ends_the_answer() {
    let text = |stream: &[u8]| {
        let mut read = Stream::default();
        let end = read.read(stream);
        let texts = read
            .decoder
            .events
            .into_iter()
            .filter_map(|event| match event {
                Event::Text(text) => Some(text),
                _ => None,
            });
        (texts.collect::<String>(), end)
    };
    let said = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    for (stream, arrives) in [
        (said("a\\ud83d") + &said("\\ude00 b"), "a😀 b"),
        (said("a\\ud83d b"), "a� b"),
        (format!("\u{feff}{}", said("a")), "a"),
        (
            "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]}\n\n".to_owned(),
            "a",
        ),
        (
            "data: null\n\ndata: 7\n\ndata: {\"other\":1}\n\n".to_owned() + &said("a"),
            "a",
        ),
    ] {
        let stream = stream + "data: [DONE]\n\n";
        assert_eq!(
            text(stream.as_bytes()),
            (arrives.to_owned(), Ok(true)),
            "{stream}"
        );
    }
    let bad = said("a?b").replace('?', "\u{1}").into_bytes();
    let bad: Vec<u8> = bad
        .into_iter()
        .map(|byte| if byte == 1 { 0xff } else { byte })
        .collect();
    assert_eq!(text(&bad).0, "a�b");
    // What cannot be read at all is no answer without it.
    for cut in [
        "data: {\"choices\":[{\"delta\":\n\n",
        "data: {\"choices\":[{]}\n\n",
    ] {
        let (_, end) = text(&[said("a").as_bytes(), cut.as_bytes(), b"data: [DONE]\n\n"].concat());
        assert_eq!(end.unwrap_err().code, Code::Unreachable, "{cut}");
    }
}
