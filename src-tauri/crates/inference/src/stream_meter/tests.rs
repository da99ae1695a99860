use super::*;
use crate::{
    caller::Caller, charge::Charge, chat_text::TextRules, metrics::Metrics, speed::SpeedMeter,
};
use serde_json::json;
use tierbar_core::{ModelId, TierId};

fn small() -> ModelId {
    ModelId("small".to_owned())
}

fn counted() -> AnswerMetrics {
    Metrics::default().answer(&TierId::new("fast").unwrap(), Instant::now())
}

fn charge() -> Attempt {
    Charge::new(Caller::default(), 0).attempt()
}

#[test]
fn bytes_pass_unchanged_and_never_within_a_line() {
    let stream = "data: {\"choices\":[]}\n\n: note\ndata: [DONE]\n\n";
    for size in 1..stream.len() {
        let mut meter =
            StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge());
        let mut passed = Vec::new();
        for piece in stream.as_bytes().chunks(size) {
            let passing = meter.pass(Bytes::from_static(piece));
            assert!(passing.is_empty() || passing.ends_with(b"\n"));
            passed.extend(passing);
        }
        assert_eq!(String::from_utf8(passed).unwrap(), stream);
        assert!(meter.ended);
    }
}

#[test]
fn a_carriage_return_alone_ends_a_line() {
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let stream = format!(": waits\n\n{}{}data: [DONE]\n\n", event("a"), event("b"));
    let sent = stream.replace('\n', "\r");
    for reads in [StreamReading::Nothing, StreamReading::Values] {
        for size in 1..=sent.len() {
            let meter =
                StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge());
            let mut meter = meter.reading(Form::Chat, reads);
            let pieces = sent.as_bytes().chunks(size);
            let passed = pieces.map(|piece| meter.pass(Bytes::copy_from_slice(piece)));
            let passed = passed.collect::<Vec<_>>().concat();
            assert_eq!(String::from_utf8(passed).unwrap(), stream, "{size}");
            assert!(meter.ended && meter.spoken && meter.failure().is_none());
        }
    }
}

#[test]
fn a_partial_line_of_a_broken_stream_is_held_back() {
    let mut meter = StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge());
    let passed =
        meter.pass("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"cho".into());
    assert!(passed.ends_with(b"}\n\n"));
    assert!(!meter.ended);
}

#[test]
fn reasoning_calls_and_lists_are_content_unless_empty() {
    for (delta, spoken) in [
        (r#"{"reasoning":"hm"}"#, true),
        (r#"{"reasoning":"hm","reasoning_content":"hm"}"#, true),
        (r#"{"content":[{"type":"text","text":"a"}]}"#, true),
        (r#"{"tool_calls":[{"index":0}]}"#, true),
        (r#"{"refusal":"no"}"#, true),
        (
            r#"{"content":"","refusal":null,"reasoning":null,"tool_calls":[]}"#,
            false,
        ),
        (r#"{"content":[]}"#, false),
    ] {
        let mut meter =
            StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge());
        meter.pass(format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n").into());
        assert_eq!(meter.spoken, spoken, "{delta}");
    }
}

#[test]
fn an_error_event_ends_an_answer() {
    let mut meter = StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge());
    meter.pass("data: {\"error\":{\"message\":\"m\"}}\n\n".into());
    assert!(meter.ended);
}

#[test]
fn the_engines_figures_come_from_streams_and_whole_answers() {
    let figures = r#"{"choices":[{"delta":{}}],"timings":{"prompt_per_second":310.5,"predicted_per_second":41.25}}"#;
    let (streamed, came_whole) = (SpeedMeter::default(), SpeedMeter::default());
    StreamMeter::new(streamed.begin(&small()), counted(), charge())
        .pass(format!("data: {figures}\n\n").into());
    whole(
        Form::Chat,
        &came_whole.begin(&small()),
        &mut counted(),
        charge(),
        figures.as_bytes(),
    );
    for meter in [streamed, came_whole] {
        assert_eq!(meter.speed().decode_tokens_per_second, Some(41.25));
        assert_eq!(meter.speed().prefill_tokens_per_second, Some(310.5));
    }
}

#[test]
fn an_hour_of_pings_passes_and_is_not_kept() {
    for reads in [StreamReading::Nothing, StreamReading::Values] {
        let meter = StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge());
        let mut meter = meter.reading(Form::Messages, reads);
        for _ in 0..3600 {
            let ping = Bytes::from_static(b"event: ping\ndata: {\"type\": \"ping\"}\n\n");
            assert_eq!(meter.pass(ping.clone()), ping);
            assert!(meter.take_lines().len() <= 1);
        }
        assert!(!meter.spoken && !meter.ended);
    }
}

#[test]
fn an_event_in_many_lines_is_bounded() {
    let mut meter = StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge());
    meter.pass("data: {\"choices\":[\n".into());
    let line = format!("data: {}\n", "1,".repeat(1 << 10));
    for _ in 0..(LONGEST_LINE >> 10) {
        meter.pass(line.clone().into());
    }
    assert!(meter.events.pending() <= LONGEST_LINE + line.len());
}

#[test]
fn a_last_event_without_a_line_end_is_taken() {
    let stops = "data: {\"type\":\"message_stop\"}";
    for (form, last, is_taken) in [
        (Form::Messages, stops, true),
        (
            Form::Messages,
            "data: {\"type\":\ndata: \"message_stop\"}",
            true,
        ),
        (Form::Messages, &stops[..stops.len() - 1], false),
        (Form::Messages, "event: message_stop", false),
        (Form::Messages, "", false),
        (
            Form::Responses,
            "data: {\"type\":\"response.completed\"}\r",
            true,
        ),
        (Form::Chat, "data: [DONE]", true),
        (Form::Chat, "data: [DON", false),
    ] {
        let mut meter = passing(form);
        let mut passed = meter.pass(last.into()).to_vec();
        assert!(!meter.ended);
        let rest = meter.take_rest();
        assert_eq!((rest.is_some(), meter.ended), (is_taken, is_taken));
        if let Some(rest) = rest {
            passed.extend(rest);
            let whole = last.replace("\ndata: ", " ");
            let whole = whole.trim_end();
            assert_eq!(String::from_utf8(passed).unwrap(), format!("{whole}\n\n"));
        }
        assert_eq!(meter.take_rest(), None);
    }
}

#[test]
fn a_last_event_does_not_join_the_one_before_it() {
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n")
    };
    let half = event("b\\ud83d");
    for (sent, right) in [
        (
            event("a") + "data: [DONE]",
            event("a") + "\ndata: [DONE]\n\n",
        ),
        (
            format!("{half}\ndata: {{\"object\":\"ping\"}}\n"),
            format!(":\n\n{}\n", event("b\u{fffd}")),
        ),
    ] {
        let mut meter = passing(Form::Chat);
        let mut passed = meter.pass(sent.into()).to_vec();
        passed.extend(meter.take_rest().unwrap());
        assert_eq!(String::from_utf8(passed).unwrap(), right);
    }
}

#[test]
fn halves_meet_across_pings_and_other_answers() {
    let chat = |index: u64, text: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
        )
    };
    let block = |text: &str| {
        format!(
            "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        )
    };
    let ping = || "data: {\"type\":\"ping\"}\n\n".to_owned();
    let delta = |text: &str| {
        format!("data: {{\"type\":\"response.output_text.delta\",\"delta\":\"{text}\"}}\n\n")
    };
    let keepalive = || "data: {\"type\":\"keepalive\",\"sequence_number\":7}\n\n".to_owned();
    for (form, sent, right) in [
        (
            Form::Chat,
            vec![
                chat(0, "a\\ud83d"),
                chat(1, "b\\ud83d"),
                chat(0, "\\ude00"),
                chat(1, "\\ude00c"),
            ],
            vec![
                chat(0, "a\\ud83d\\ude00"),
                chat(0, ""),
                chat(1, "b\\ud83d\\ude00"),
                chat(1, "c"),
            ],
        ),
        (
            Form::Messages,
            vec![block("a\\ud83d"), ping(), block("\\ude00b")],
            vec![
                "event: ping\n".to_owned() + &ping(),
                "event: content_block_delta\n".to_owned() + &block("a\\ud83d\\ude00"),
                "event: content_block_delta\n".to_owned() + &block("b"),
            ],
        ),
        (
            Form::Responses,
            vec![delta("a\\ud83d"), keepalive(), delta("\\ude00b")],
            vec![
                "event: keepalive\n".to_owned() + &keepalive(),
                "event: response.output_text.delta\n".to_owned() + &delta("a\\ud83d\\ude00"),
                "event: response.output_text.delta\n".to_owned() + &delta("b"),
            ],
        ),
    ] {
        let passed = passing(form).pass(sent.concat().into());
        assert_eq!(String::from_utf8_lossy(&passed), right.concat(), "{form:?}");
    }
}

#[test]
fn half_a_letter_passes_before_what_ends_its_stream() {
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let (half, right) = (event("a\\ud83d"), event("a\u{fffd}"));
    let ping = "data: {\"object\":\"ping\"}\n";
    let many = format!("data: {}\n", "1,".repeat(1 << 10)).repeat(LONGEST_LINE >> 10);
    for (sent, right) in [
        (format!("{half}dat: {{}}\n\n"), right.clone()),
        (
            format!("{half}{ping}dat: {{}}\n\n"),
            format!(":\n\n{right}"),
        ),
        (
            format!("{half}data: {{\"choices\":[\n{many}"),
            right.clone(),
        ),
    ] {
        let mut meter = passing(Form::Chat);
        let passed = meter.pass(sent.into());
        assert_eq!(String::from_utf8_lossy(&passed), right);
        assert!(meter.take_broken().is_some() && meter.spoken);
    }
    let mut meter = passing(Form::Chat);
    assert_eq!(meter.pass(half.into()), "");
    let reset = || Error::new(Code::Unreachable, "reset");
    assert_eq!(meter.break_off(reset()).unwrap(), right);
    assert_eq!(meter.take_broken().unwrap().message, "reset");
    assert_eq!(meter.break_off(reset()).unwrap_err().message, "reset");
}

#[test]
fn what_is_held_passes_before_a_line_that_is_too_long() {
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n")
    };
    let long = format!("data: {{\"x\":\"{}", "y".repeat(LONGEST_LINE));
    for (held, right) in [
        (event("a\\ud83d") + "\n", event("a\u{fffd}") + "\n"),
        (event("a\\ud83d"), format!("\n{}\n", event("a\u{fffd}"))),
        // Its event lacks the line that ends it.
        (event("a"), event("a") + "\n"),
    ] {
        let mut meter = passing(Form::Chat);
        let mut passed = meter.pass(held.into()).to_vec();
        for piece in long.as_bytes().chunks(1 << 16) {
            passed.extend(meter.pass(Bytes::copy_from_slice(piece)));
        }
        passed.extend(meter.take_rest().unwrap());
        assert!(meter.take_broken().is_none() && meter.spoken);
        assert_eq!(String::from_utf8(passed).unwrap(), right + &long);
    }
    // It goes on from what is held.
    let mut meter = passing(Form::Chat);
    meter.pass("data: {\"choices\":[\n".into());
    let mut passed = 0;
    for piece in long.as_bytes().chunks(1 << 16) {
        passed += meter.pass(Bytes::copy_from_slice(piece)).len();
    }
    assert!(meter.take_broken().is_some());
    assert_eq!((passed, meter.events.pending()), (0, 0));
}

#[test]
fn a_long_line_behind_its_name_does_not_lose_it() {
    let delta = |text: &str| {
        format!(
            "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}"
        )
    };
    let name = "event: content_block_delta\n";
    let half = format!("{name}{}\"}}}}\n\n", delta("a\\ud83d"));
    let long = delta(&"y".repeat(LONGEST_EVENT));
    let mut meter = passing(Form::Messages);
    let mut passed = meter.pass((half + name).into()).to_vec();
    for piece in long.as_bytes().chunks(1 << 20) {
        passed.extend(meter.pass(Bytes::copy_from_slice(piece)));
    }
    let passed = String::from_utf8(passed).unwrap();
    assert!(passed.ends_with("\"a\u{fffd}\"}}\n\n"), "{passed:.99}");
    assert!(meter.take_broken().is_some());
}

#[test]
fn a_long_event_that_is_cut_off_is_not_the_end() {
    let long = long_delta(LONGEST_EVENT + (1 << 20));
    for (cut, may_have_ended) in [(9, false), (2, false), (1, true), (0, true)] {
        let mut meter = passing(Form::Responses);
        for piece in long.as_bytes()[..long.len() - cut].chunks(1 << 20) {
            meter.pass(Bytes::copy_from_slice(piece));
        }
        meter.take_rest();
        assert_eq!(meter.may_have_ended(), may_have_ended, "{cut}");
    }
}

#[test]
fn no_name_passes_without_data() {
    let name = "event: content_block_delta\n";
    let head = "{\"type\":\"content_block_delta\",";
    let delta = |text: &str| format!("\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}");
    let two_lines = format!("{name}data: {head}\ndata: {}\n\n", delta("a\\ud83d"));
    let rest = format!("{name}data: {head}{}\n\n", delta("\\ude00b"));
    let whole = format!("{name}data: {head} {}\n\n", delta("a\\ud83d\\ude00"));
    let left = format!("{name}data: {head}{}\n\n", delta("b"));
    let passed = passing(Form::Messages).pass((two_lines + &rest).into());
    // A name without a text is none.
    assert_eq!(
        String::from_utf8_lossy(&passed),
        format!("{name}event:\n\n{name}{whole}{left}")
    );
}

#[test]
fn the_halves_that_are_held_are_bounded() {
    let mut meter = passing(Form::Chat);
    for index in 0..1000 {
        let half = format!(
            "data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"\\ud83d\"}}}}]}}\n\n"
        );
        meter.pass(half.into());
    }
    assert!(meter.events.take_halves().len() < 10);
}

fn passing(form: Form) -> StreamMeter {
    StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge())
        .reading(form, StreamReading::Nothing)
}

/// An event whose text is about so long, in bytes.
fn long_delta(length: usize) -> String {
    let delta = "data: {} ".repeat(length / 9);
    format!("data: {{\"type\":\"response.output_text.delta\",\"delta\":\"{delta}\"}}\n\n")
}

#[test]
fn an_answer_within_one_event_is_read() {
    let mut meter = passing(Form::Responses);
    let whole = "a".repeat(2 << 20);
    let last = format!(
        "data: {{\"type\":\"response.completed\",\"response\":{{\"output\":[\"{whole}\"],\"usage\":{{\"output_tokens\":4}}}}}}\n\n"
    );
    for piece in last.as_bytes().chunks(1 << 16) {
        meter.pass(Bytes::copy_from_slice(piece));
    }
    assert!(meter.ended && meter.has_answered() && !meter.unread);
}

#[test]
fn what_is_held_of_a_stream_counts_until_it_passes() {
    let long = long_delta(2 << 20);
    let (most, end) = long.split_at(1 << 20);
    let mut meter = passing(Form::Responses);
    for _ in 0..2 {
        assert_eq!(meter.pass(most.to_owned().into()), "");
        assert_eq!(meter.share.bytes(), 1 << 20);
        let passes = meter.pass(end.to_owned().into());
        assert_eq!((passes.len(), meter.share.bytes()), (long.len(), 0));
    }
    // An event in many lines, and one that cuts off a letter.
    let line = format!("data: {}\n", "1,".repeat(1 << 9));
    let lines = "data: {\"choices\":[\n".to_owned() + &line.repeat(1 << 8);
    let text = "x".repeat(1 << 18) + "\\ud83d";
    let half = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    for held in [lines, half] {
        let mut meter = passing(Form::Chat);
        meter.pass(held.into());
        assert_eq!(meter.share.bytes(), meter.events.held() >> 16 << 16);
        assert!(meter.share.bytes() > 0);
    }
}

#[test]
fn an_event_that_is_too_long_says_nothing_of_those_behind_it() {
    let long = long_delta(LONGEST_EVENT + (1 << 20));
    let long = format!("event: response.output_text.delta\n{long}");
    let next = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n";
    for size in [9, 1 << 10, 1 << 20] {
        let mut meter = passing(Form::Responses);
        let mut passed = 0;
        // Pieces begin at each place of the text's words.
        for piece in long.as_bytes().chunks(size) {
            passed += meter.pass(Bytes::copy_from_slice(piece)).len();
            assert!(meter.partial.len() <= LONGEST_EVENT + size);
        }
        assert_eq!(passed, long.len());
        assert!(meter.may_have_ended() && !meter.ended && !meter.spoken);
        meter.pass(next.into());
        assert!(meter.spoken && !meter.may_have_ended());
        meter.pass("data: {\"type\":\"response.completed\"}\n\n".into());
        assert!(meter.ended);
    }
}

#[test]
fn an_event_that_takes_too_much_memory_is_not_parsed() {
    let lists = "[0],".repeat(70_000);
    let event =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\",\"x\":[{lists}0]}}}}]}}\n\n");
    let after = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for (reads, fails) in [
        (StreamReading::Nothing, false),
        (StreamReading::Chunks, true),
        (StreamReading::Values, true),
    ] {
        let meter = StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge());
        let mut meter = meter.reading(Form::Chat, reads);
        assert_eq!(meter.pass(event.clone().into()), event);
        assert_eq!((meter.ended, meter.spoken), (fails, false), "{reads:?}");
        meter.pass(after.into());
        // A failure is the end.
        assert_eq!(meter.spoken, !fails, "{reads:?}");
    }
}

/// A meter for a chat that offers the function `look`.
fn dividing(reads: StreamReading) -> StreamMeter {
    let look = json!({"name": "look", "parameters": {"properties": {"at": {}}}});
    let request = json!({"tools": [{"type": "function", "function": look}]});
    StreamMeter::new(SpeedMeter::default().begin(&small()), counted(), charge())
        .reading(Form::Chat, reads)
        .dividing(TextRules::of_request(&request).for_stream())
}

fn delta(text: &str) -> String {
    let event = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {event}\n\n")
}

#[test]
fn thoughts_and_a_call_in_a_text_are_no_text() {
    let pieces = [
        "<think>Hm.</think>{\"name\": ",
        "\"look\", \"arguments\": {\"at\": 1}}",
    ];
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let sent = pieces.map(delta).concat() + &format!("data: {end}\n\ndata: [DONE]\n\n");
    for reads in [
        StreamReading::Nothing,
        StreamReading::Chunks,
        StreamReading::Values,
    ] {
        let mut meter = dividing(reads);
        let passed = meter.pass(sent.clone().into());
        let lines = meter.take_lines().into_iter().map(|line| match line {
            Line::Value(event) => Value::Object(event).to_string(),
            line => format!("{line:?}"),
        });
        let read = match reads {
            StreamReading::Nothing => String::from_utf8(passed.to_vec()).unwrap(),
            StreamReading::Chunks | StreamReading::Values => lines.collect(),
        };
        for part in ["\"Hm.\"", "\"look\"", r#"{\"at\":1}"#, "\"tool_calls\""] {
            assert!(read.contains(part), "{reads:?}: {part}: {read}");
        }
        for text in ["<think>", r#"\"name"#, "\"stop\""] {
            assert!(!read.contains(text), "{reads:?}: {text}: {read}");
        }
        assert!(meter.ended && meter.spoken);
    }
}

#[test]
fn a_held_text_passes_where_its_stream_breaks_off() {
    let half = delta("{\"name\": ");
    let done = "data: [DONE]\n\n";
    let error = "data: {\"error\":{\"message\":\"m\"}}\n\n";
    for end in [done, error, ""] {
        let mut meter = dividing(StreamReading::Nothing);
        let mut passed = meter.pass(format!("{half}{end}").into()).to_vec();
        if end.is_empty() {
            let why = Error::new(Code::Unreachable, "it broke off");
            passed.extend(meter.break_off(why).unwrap());
            assert!(meter.take_broken().is_some());
        }
        let passed = String::from_utf8(passed).unwrap();
        let (_, text) = passed.split_once(r#"{\"name\": "#).expect(&passed);
        assert!(text.ends_with(end), "{passed}");
        assert_eq!(meter.take_rest(), None);
    }
    // What cannot be read ends the stream, and what is not read passes behind the text.
    let lists = "[0],".repeat(70_000);
    let large = format!("data: {{\"choices\":[{{\"x\":[{lists}0]}}]}}\n\n");
    for (next, breaks) in [("data: {\"choices\":7}\n\n", true), (&*large, false)] {
        let mut meter = dividing(StreamReading::Nothing);
        let passed = meter.pass(format!("{half}{next}").into());
        let passed = String::from_utf8(passed.to_vec()).unwrap();
        let (_, text) = passed.split_once(r#"{\"name\": "#).expect(&passed);
        assert_eq!(text.contains("data:"), !breaks, "{passed}");
        assert_eq!(meter.take_broken().is_some(), breaks, "{next:.99}");
    }
    let mut meter = dividing(StreamReading::Values);
    meter.pass(format!("{half}{done}").into());
    let lines = format!("{:?}", meter.take_lines());
    assert!(lines.contains(r#"{\"name\": "#), "{lines}");
}
