//! Answers for the tests of this crate.

use axum::{body::to_bytes, response::Response};
use serde_json::Value;
use std::time::Instant;
use tierbar_core::{Error, ModelId, TierId, TierState, status::TierStatus};
use tierbar_inference::{
    ask::{AnswerFailure, CompleteAnswer, Event},
    caller::Caller,
    charge::Charge,
    events::Decoder,
    metrics::Metrics,
    original::Form,
    source::Source,
    speed::SpeedMeter,
    stream_meter::{StreamMeter, StreamReading},
};

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
pub(crate) fn events_of(chunks: impl IntoIterator<Item = Value>) -> Vec<Event> {
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
pub(crate) fn gathered(answer: &Value) -> CompleteAnswer {
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

/// The last event of an answer that breaks off.
pub(crate) fn failed(error: Error) -> Event {
    Event::Failed(AnswerFailure {
        error,
        status: None,
        body: None,
        may_wait: false,
        source: Source::default(),
    })
}

/// The body of a response.
pub(crate) async fn text(response: Response) -> String {
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

pub(crate) fn tier(id: &str, model: Option<&str>, state: TierState) -> TierStatus {
    TierStatus {
        model: model.map(|model| ModelId(model.to_owned())),
        context_tokens: 4096,
        ..TierStatus::new(TierId::new(id).unwrap(), state)
    }
}
