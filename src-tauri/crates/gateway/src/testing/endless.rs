//! A host whose measurements never end by themselves.

use std::sync::{Arc, Mutex};
use tierbar_core::{Code, Error, TierId, lease::BoxFuture};
use tierbar_inference::services::measures::{MeasureEvent, Measurement, Measures};
use tierbar_measure::{
    bench::{BenchReport, BenchRequest, Progress},
    tune::{TuneReport, TuneRequest},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Measurements that tell one step and end when they are called off.
#[derive(Debug, Default)]
pub(super) struct Endless {
    running: Arc<Mutex<bool>>,
}

impl Endless {
    fn begin(&self, doing: String) -> Result<Measurement, Error> {
        let cancel = CancellationToken::new();
        if std::mem::replace(&mut *self.running.lock().unwrap(), true) {
            return Err(Error::new(Code::Measuring, "one is running"));
        }
        let (teller, events) = mpsc::unbounded_channel();
        let (ends, running) = (cancel.clone(), Arc::clone(&self.running));
        let progress = Progress {
            done: 0,
            of: 1,
            doing,
        };
        teller.send(MeasureEvent::Progress(progress)).unwrap();
        tokio::spawn(async move {
            ends.cancelled().await;
            *running.lock().unwrap() = false;
            drop(teller);
        });
        Ok(Measurement {
            events,
            cancel: cancel.drop_guard(),
        })
    }
}

impl Measures for Endless {
    fn bench(&self, tier: TierId, ask: BenchRequest) -> Result<Measurement, Error> {
        self.begin(format!("{tier} {:?}", ask.depths))
    }
    fn tune(&self, tier: TierId, ask: TuneRequest) -> Result<Measurement, Error> {
        self.begin(format!("{tier} {:?}", ask.threads))
    }
    fn agent(&self, tier: TierId) -> Result<Measurement, Error> {
        self.begin(tier.to_string())
    }
    fn last_bench(&self, tier: TierId) -> BoxFuture<'_, Result<Option<BenchReport>, Error>> {
        Box::pin(async move { Err(Error::new(Code::TierUnknown, format!("no {tier}"))) })
    }
    fn last_tune(&self, tier: TierId) -> BoxFuture<'_, Result<Option<TuneReport>, Error>> {
        Box::pin(async move { Err(Error::new(Code::TierUnknown, format!("no {tier}"))) })
    }
}
