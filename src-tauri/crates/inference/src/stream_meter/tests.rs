use super::*;
use crate::{caller::Caller, charge::Charge, metrics::Metrics, speed::SpeedMeter};
use tierbar_core::{ModelId, TierId};

fn small() -> ModelId {
    ModelId("small".to_owned())
}

fn counted() -> Answer {
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
        (r#"{"content":"","reasoning":null,"tool_calls":[]}"#, false),
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
    assert!(meter.data.len() <= LONGEST_LINE + line.len());
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
fn an_event_that_is_too_long_says_nothing_of_those_behind_it() {
    let long = long_delta(LONGEST_EVENT + (1 << 20));
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
