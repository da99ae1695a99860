//! Random broken streams, as each reader of them reads them: what ends as a complete answer has all of its text.

use super::super::AnswerParts;
use crate::{
    caller::Caller,
    charge::Charge,
    events::{CompleteAnswer, Decoder},
    metrics::Metrics,
    original::Form,
    speed::SpeedMeter,
    stream_meter::{StreamMeter, StreamReading},
    testing::streams::{Dice, Reading, mutate, read, stream},
};
use bytes::Bytes;
use serde_json::Value;
use std::time::Instant;
use tierbar_core::{ModelId, TierId};

fn meter(reads: StreamReading) -> StreamMeter {
    let answering = SpeedMeter::default().begin(&ModelId("small".to_owned()));
    let counted = Metrics::default().answer(&TierId::new("fast").unwrap(), Instant::now());
    let charge = Charge::new(Caller::default(), 0).attempt();
    StreamMeter::new(answering, counted, charge).reading(Form::Chat, reads)
}

/// Passes a stream in pieces, with what comes at its end. `None` for one that is not complete.
fn pass(
    meter: &mut StreamMeter,
    stream: &[u8],
    size: usize,
    mut take: impl FnMut(&mut StreamMeter, Bytes) -> Option<()>,
) -> Option<()> {
    for piece in stream.chunks(size) {
        let passing = meter.pass(Bytes::copy_from_slice(piece));
        take(meter, passing)?;
        if meter.take_broken().is_some() {
            return None;
        }
        if meter.ended {
            break;
        }
    }
    while !meter.ended
        && let Some(rest) = meter.take_rest().or_else(|| meter.end())
    {
        take(meter, rest)?;
    }
    let is_complete = meter.take_broken().is_none() && meter.ended;
    (is_complete && meter.failure().is_none()).then_some(())
}

/// As our dialects and chats read it.
fn decoded(stream: &[u8], size: usize) -> Option<Reading> {
    let (mut decoder, mut ended) = (Decoder::default(), false);
    pass(
        &mut meter(StreamReading::Chunks),
        stream,
        size,
        |meter, passing| {
            ended |= decoder.read(passing.len(), meter.take_lines()).ok()?;
            Some(())
        },
    )?;
    let mut whole = CompleteAnswer::default();
    for event in decoder.events {
        assert_eq!(whole.add(event), None);
    }
    assert!(ended && !whole.reason.is_empty());
    let calls = whole.calls.into_iter().map(|call| call.arguments).collect();
    Some(Reading {
        text: whole.text,
        reasoning: whole.reasoning,
        calls,
        lost: false,
        ends: true,
    })
}

/// As a client reads it that asked for no stream.
fn gathered(stream: &[u8], size: usize) -> Option<Reading> {
    let mut parts = AnswerParts::new(Form::Chat);
    pass(
        &mut meter(StreamReading::Values),
        stream,
        size,
        |meter, _| {
            parts.read_lines(meter.take_lines()).ok()?;
            Some(())
        },
    )?;
    let whole = parts.whole();
    let choices = whole["choices"].as_array().unwrap().iter();
    let first = choices.clone().find(|choice| choice["index"] == 0);
    let message = first.map_or(&Value::Null, |choice| &choice["message"]);
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let arguments = |call: &Value| {
        call["function"]["arguments"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    Some(Reading {
        text: text_of(&message["content"]),
        reasoning: text_of(&message["reasoning_content"]),
        calls: calls.map(arguments).collect(),
        lost: false,
        ends: true,
    })
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect(),
        Value::Object(part) => part.get("text").map(text_of).unwrap_or_default(),
        Value::Null => String::new(),
        plain => plain.to_string(),
    }
}

/// What passes to a client of OpenAI's dialect, which takes each event for an object with choices.
fn relayed(stream: &[u8], size: usize) -> Option<Reading> {
    let mut passed = Vec::new();
    pass(
        &mut meter(StreamReading::Nothing),
        stream,
        size,
        |_, passing| {
            passed.extend(passing);
            Some(())
        },
    )?;
    let text = String::from_utf8(passed.clone()).expect("letters alone pass");
    // Carriage returns end lines, too.
    let mut data = Vec::new();
    let text = text.replace("\r\n", "\n");
    for line in text.split(['\n', '\r']) {
        if let Some(more) = line.strip_prefix("data:") {
            data.push(more);
        } else if line.is_empty() && !data.is_empty() {
            let event = std::mem::take(&mut data).join("\n");
            if event.trim() == "[DONE]" {
                break;
            }
            let event: Value =
                serde_json::from_str(&event).unwrap_or_else(|error| panic!("{error}: {event}"));
            let choices = event["choices"]
                .as_array()
                .unwrap_or_else(|| panic!("{event}"));
            for call in choices
                .iter()
                .flat_map(|choice| choice["delta"]["tool_calls"].as_array())
                .flatten()
            {
                let arguments = &call["function"]["arguments"];
                let is_odd = !call.is_object() || !call["function"].is_object();
                assert!(
                    is_odd
                        || call["index"].is_u64() && (arguments.is_string() || arguments.is_null()),
                    "{event}"
                );
            }
        }
    }
    Some(read(&passed))
}

type Reads = fn(&[u8], usize) -> Option<Reading>;
const READERS: [(&str, Reads); 3] = [
    ("decoded", decoded),
    ("gathered", gathered),
    ("relayed", relayed),
];

/// Whether a text has all letters of another that no stream can cut in two, in their order.
fn has_all(text: &str, other: &str) -> bool {
    let mut letters = text.chars();
    let mut whole = other.chars().filter(char::is_ascii);
    whole.all(|letter| letters.any(|found| found == letter))
}

/// `must_end`: nothing of the stream is lost.
fn check(stream: &[u8], size: usize, seed: u64, must_end: bool) -> usize {
    let compared = |reading: Reading| match must_end {
        true => reading,
        // Which halves of letters belong together is a guess once a stream is broken.
        false => reading.letters(),
    };
    let right = compared(read(stream));
    let mut complete = 0;
    for (name, reader) in READERS {
        let shown = || format!("seed {seed}, {name}: {:?}", String::from_utf8_lossy(stream));
        match reader(stream, size).map(compared) {
            Some(found) => {
                assert!(!right.lost, "{} is complete", shown());
                // Without its id, a call goes on in another.
                for (found, right) in [
                    (&found.text, &right.text),
                    (&found.reasoning, &right.reasoning),
                    (&found.calls.concat(), &right.calls.concat()),
                ] {
                    let is_whole = match must_end {
                        true => found == right,
                        false => has_all(found, right),
                    };
                    assert!(is_whole, "{}: {found:?} for {right:?}", shown());
                }
                complete += 1;
            }
            None => assert!(!must_end, "{} is not complete", shown()),
        }
    }
    complete
}

fn check_all(streams: u64) {
    let mut complete = 0;
    for seed in 0..streams {
        let mut dice = Dice::new(seed);
        let mut stream = stream(&mut dice);
        let size = 1 + dice.below(stream.len());
        check(&stream, size, seed, true);
        for _ in 0..=dice.below(3) {
            mutate(&mut stream, &mut dice);
        }
        complete += check(&stream, size, seed, false);
    }
    assert!(
        complete as u64 > streams / 2,
        "only {complete} of {streams} were complete"
    );
}

#[test]
fn a_complete_answer_has_all_of_its_text() {
    check_all(100);
}

#[test]
#[ignore = "slow"]
fn a_complete_answer_has_all_of_its_text_in_many_streams() {
    check_all(10_000);
}
