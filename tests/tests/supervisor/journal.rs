//! The events in the journal: each once, in order, with its figures.

use super::*;
use std::sync::Mutex;
use tierbar_core::{
    budget::{Budget, GIB},
    journal::{Journal, Kind, LogEvent},
    policy::Alarm,
};

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<LogEvent>>);

impl Journal for Recorder {
    fn record(&self, event: LogEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl Recorder {
    /// Returns the kinds and sentences since the last call. Times differ from run to run and are replaced by `…`.
    fn take(&self) -> Vec<(Kind, String)> {
        let events = std::mem::take(&mut *self.0.lock().unwrap());
        let line = |event: LogEvent| (event.kind, untimed(&event.sentence));
        events.into_iter().map(line).collect()
    }

    fn kinds(&self) -> Vec<Kind> {
        self.take().into_iter().map(|(kind, _)| kind).collect()
    }
}

fn untimed(sentence: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in sentence.split(' ') {
        let unit = word.trim_end_matches([',', ':']);
        let number = words.last().map(|last| last.trim_start_matches('('));
        let timed = ["ms", "s", "min"].contains(&unit)
            && number.is_some_and(|number| number.parse::<f64>().is_ok());
        match words.last_mut() {
            Some(last) if timed => {
                let opened = if last.starts_with('(') { "(" } else { "" };
                *last = format!("{opened}…{}", &word[unit.len()..]);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// Twelve GiB, one tier at a time.
fn bench(tiers: &[(&str, &str, u64)]) -> (Bench, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let journal = Arc::clone(&recorder);
    let bench = Bench::with(tiers, |options| {
        options.journal = journal;
        options.budget = Budget {
            total_bytes: 12 * GIB,
            max_loaded: 1,
            paging: tierbar_core::config::Paging::Mmap,
            embedder_bytes: 0,
        };
    });
    (bench, recorder)
}

#[tokio::test]
async fn a_swap_is_logged_from_load_to_reclaimed_memory() {
    let (bench, recorder) = bench(&[("fast", "good", GIB), ("heavy", "good", 8 * GIB)]);
    drop(bench.lease("fast").await.unwrap());
    drop(bench.lease("heavy").await.unwrap());
    let events: Vec<_> = recorder.0.lock().unwrap().clone();
    assert!(
        events
            .iter()
            .all(|each| each.model.as_ref().unwrap().as_str() == "good")
    );
    let tiers = events
        .iter()
        .map(|each| each.tier.as_ref().unwrap().as_str());
    assert_eq!(
        tiers.collect::<Vec<_>>(),
        ["fast", "fast", "fast", "heavy", "heavy"]
    );
    let ready = |tier: &str| {
        let what =
            "good with 512 tokens of context, 0 MiB allocated and 0 MiB mapped from the file";
        (Kind::Ready, format!("{tier} is ready after …: {what}"))
    };
    let loads = |tier: &str, planned: &str| {
        let what = format!("{planned} planned of a 12.0 GiB budget");
        (
            Kind::Load,
            format!("{tier} is loading good for a request: {what}"),
        )
    };
    let gone = "fast was unloaded to make room for heavy; freed up to 1.0 GiB";
    assert_eq!(
        recorder.take(),
        [
            loads("fast", "1.0 GiB"),
            ready("fast"),
            (Kind::Unload, gone.to_owned()),
            loads("heavy", "8.0 GiB"),
            ready("heavy"),
        ]
    );
    // A measured figure is in the event if it is known.
    bench.handle.set_footprints(vec![(id("heavy"), 3 * GIB)]);
    bench.close().await;
    let gone = "unloaded heavy on quit, freed 3.0 GiB";
    assert_eq!(recorder.take(), [(Kind::Unload, gone.to_owned())]);
}

#[tokio::test]
async fn a_crash_is_logged_with_its_signal_and_broken_leases() {
    let (bench, recorder) = bench(&[("fast", "good", GIB)]);
    let lease = bench.lease("fast").await.unwrap();
    bench.handle.set_footprints(vec![(id("fast"), 2 * GIB)]);
    assert_eq!(recorder.kinds(), [Kind::Load, Kind::Ready]);
    let _ = get(&*lease, "/crash").await;
    soon(lease.ended()).await;
    let what = "the worker of fast was killed by signal 6 (SIGABRT) (… after it was ready, 2.0 GiB in use, an answer interrupted)";
    assert_eq!(recorder.take(), [(Kind::Crash, what.to_owned())]);
    bench.close().await;
    assert_eq!(recorder.take(), []);
}

#[tokio::test]
async fn a_failed_load_is_logged_with_its_cause_and_refusals() {
    let (bench, recorder) = bench(&[("fast", "dies-at-start", GIB), ("heavy", "fails", GIB)]);
    bench.lease("fast").await.unwrap_err();
    let what = "fast could not start: its worker exited with code 3 while loading; its last output was: error: the tensors are not what they seem";
    let crash = recorder.take();
    assert_eq!(crash[0].0, Kind::Load);
    assert_eq!(
        crash[1..],
        [
            (
                Kind::Crash,
                format!("{what} (after … of loading, 1.0 GiB planned)")
            ),
            (
                Kind::Refusal,
                format!("a request for fast was refused: {what}")
            ),
        ]
    );
    bench.lease("heavy").await.unwrap_err();
    let failure =
        "heavy cannot be loaded: no such architecture (after … of loading, 1.0 GiB planned)";
    let events = recorder.take();
    assert_eq!(events[1], (Kind::Failure, failure.to_owned()));
    assert_eq!(events[2].0, Kind::Refusal);
    bench.close().await;
}

#[tokio::test]
async fn refusals_are_logged_with_needed_and_available_memory() {
    let (bench, recorder) = bench(&[("fast", "good", 5 * GIB), ("heavy", "good", 13 * GIB)]);
    bench.lease("heavy").await.unwrap_err();
    let what = "a request for heavy was refused: good needs 13.0 GiB, and the budget for models is 12.0 GiB";
    assert_eq!(recorder.take(), [(Kind::Refusal, what.to_owned())]);
    bench.close().await;
    assert_eq!(recorder.take(), []);
}

#[tokio::test]
async fn a_pin_is_logged_as_the_reason_of_loads_and_refusals() {
    let (bench, recorder) = bench(&[("fast", "good", 5 * GIB), ("heavy", "good", 8 * GIB)]);
    bench.handle.set_budget(Budget {
        total_bytes: 12 * GIB,
        max_loaded: 2,
        paging: tierbar_core::config::Paging::Mmap,
        embedder_bytes: 0,
    });
    let pinned = TierSpec {
        pinned: true,
        ..tier_spec("fast", "good")
    };
    bench
        .handle
        .set_tiers(vec![pinned, tier_spec("heavy", "good")]);
    bench.in_state("fast", TierState::Ready).await;
    let error = bench.lease("heavy").await.unwrap_err();
    let why = "heavy does not fit in memory beside fast, which is pinned: it needs 8.0 GiB, and 5.0 GiB of the 12.0 GiB budget is in use";
    assert_eq!(error.message, why);
    let events = recorder.take();
    let loads = "fast is loading good because it is pinned: 5.0 GiB planned of a 12.0 GiB budget";
    assert_eq!(events[0], (Kind::Load, loads.to_owned()));
    let refused = format!("a request for heavy was refused: {why}");
    assert_eq!(events[2], (Kind::Refusal, refused));
    bench.close().await;
}

#[tokio::test]
async fn repeated_refusals_are_counted_in_one_entry() {
    let (bench, recorder) = bench(&[("fast", "good", GIB)]);
    bench.source.forget("fast");
    for _ in 0..4 {
        bench.lease("fast").await.unwrap_err();
    }
    bench.lease("slow").await.unwrap_err();
    let what = "a request for fast was refused: no model is chosen for it";
    assert_eq!(recorder.take(), [(Kind::Refusal, what.to_owned())]);
    bench.source.script("fast", "good", GIB);
    drop(bench.lease("fast").await.unwrap());
    let events = recorder.take();
    let more = "3 more for fast were refused within …, for the same reason";
    assert_eq!(events[0], (Kind::Refusal, more.to_owned()));
    let kinds: Vec<_> = events.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Kind::Refusal, Kind::Load, Kind::Ready]);
    bench.close().await;
}

#[tokio::test]
async fn a_step_down_is_logged_once_per_alarm() {
    let (bench, recorder) = bench(&[("fast", "good", GIB), ("heavy", "good", GIB)]);
    let lease = bench.lease("heavy").await.unwrap();
    recorder.take();
    for alarm in [Alarm::Hold, Alarm::Unload] {
        let why = "memory is about to run out".to_owned();
        bench.handle.set_alarm(alarm, why);
    }
    // Handled after them.
    assert!(bench.lease("gone").await.is_err());
    let sentence = "fast answers for heavy for 5 min, because memory ran low while heavy was loaded: memory is about to run out";
    let stepped = (Kind::StepDown, sentence.to_owned());
    let events = recorder.0.lock().unwrap().clone();
    let events: Vec<_> = events
        .into_iter()
        .map(|event| (event.kind, event.sentence))
        .collect();
    assert_eq!(events, [stepped]);
    bench.handle.set_alarm(Alarm::None, String::new());
    drop(lease);
    bench.close().await;
}
