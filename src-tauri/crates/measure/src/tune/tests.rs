use super::*;
use proptest::prelude::*;
use std::collections::HashMap;
use tierbar_core::config::KvCache;

const BEFORE: Settings = Settings {
    threads: 0,
    batch: 512,
    gpu_layers: None,
    kv_cache: KvCache::F16,
};

fn limits(cores: u16) -> Limits {
    Limits {
        cores,
        gpu_layers: None,
        gpu_holds_all: false,
    }
}

fn taking(ms: f64, noise: f64, threads_used: u16) -> CandidateMeasurement {
    CandidateMeasurement {
        request_ms: Figure {
            median: ms,
            low: ms * (1.0 - noise / 2.0),
            high: ms * (1.0 + noise / 2.0),
        },
        prefill: 100.0,
        decode: 10.0,
        threads_used,
        load_ms: None,
        memory: BenchMemory::default(),
    }
}

/// Runs a search on a machine that uses three threads by itself; `time` gives the time of each candidate.
fn run(
    request: TuneRequest,
    limits: Limits,
    mut time: impl FnMut(Settings) -> Result<f64, String>,
) -> (Vec<TuneRow>, Settings, f64) {
    let mut search = Search::new(request, BEFORE, limits);
    let mut tried = 0;
    while let Some((_, settings)) = search.next_candidate() {
        tried += 1;
        assert!(tried < 200, "it does not end");
        let threads = if settings.threads == 0 {
            3
        } else {
            settings.threads
        };
        search.record(time(settings).map(|ms| taking(ms, 0.01, threads)));
    }
    search.finish()
}

fn request() -> TuneRequest {
    TuneRequest::default()
}

#[test]
fn the_best_value_of_each_setting_is_confirmed_and_kept() {
    let (rows, after, gain) = run(request(), limits(8), |settings| {
        let threads = if settings.threads == 4 { 0.8 } else { 1.0 };
        let batch = if settings.batch == 1024 { 0.9 } else { 1.0 };
        Ok(1000.0 * threads * batch)
    });
    assert_eq!((after.threads, after.batch), (4, 1024));
    assert!((gain - 0.28).abs() < 1e-9, "{gain}");
    let of = |knob| rows.iter().filter(move |row| row.knob == knob);
    // Around three, and never all eight.
    let threads: Vec<_> = of(Knob::Threads).map(|row| row.settings.threads).collect();
    assert_eq!(threads, [1, 2, 4, 5, 7]);
    assert!(of(Knob::Batch).all(|row| row.settings.threads == 4));
    assert_eq!(of(Knob::Check).count(), 2);
    assert_eq!(of(Knob::GpuLayers).count(), 0);
}

#[test]
fn a_gain_within_the_noise_is_ignored() {
    let mut search = Search::new(request(), BEFORE, limits(8));
    let mut ms = 1000.0;
    while let Some((_, settings)) = search.next_candidate() {
        // Each is a little faster than the one before it, within the noise.
        ms *= 0.97;
        search.record(Ok(taking(ms, 0.2, settings.threads.max(3))));
    }
    let (rows, after, gain) = search.finish();
    assert_eq!((after, gain), (BEFORE, 0.0));
    assert!(rows.iter().any(|row| row.reason.contains("may be chance")));
}

#[test]
fn an_unconfirmed_gain_is_discarded() {
    let mut seen: HashMap<Settings, u32> = HashMap::new();
    let (rows, after, gain) = run(request(), limits(8), |settings| {
        let times = seen.entry(settings).or_default();
        *times += 1;
        // The machine was busy during the first measurement of the tier, but not during the second.
        Ok(if settings == BEFORE && *times == 1 {
            2000.0
        } else {
            1000.0
        })
    });
    assert_eq!((after, gain), (BEFORE, 0.0));
    let last = rows.last().unwrap();
    assert_eq!((last.knob, last.outcome), (Knob::Check, Outcome::NotFaster));
}

#[test]
fn a_smaller_cache_is_chosen_only_where_allowed() {
    let time = |settings: Settings| {
        Ok(if settings.kv_cache == KvCache::Q8_0 {
            500.0
        } else {
            1000.0
        })
    };
    let (rows, after, _) = run(request(), limits(2), time);
    assert_eq!(after, BEFORE);
    let measured: Vec<_> = rows
        .iter()
        .filter(|row| row.outcome == Outcome::Told)
        .map(|row| row.settings.kv_cache)
        .collect();
    assert_eq!(measured, [KvCache::Q8_0, KvCache::Q4_0]);
    let allowed = TuneRequest {
        kv_cache: true,
        ..request()
    };
    let (_, after, gain) = run(allowed, limits(2), time);
    assert_eq!((after.kv_cache, gain), (KvCache::Q8_0, 0.5));
}

#[test]
fn a_failed_candidate_is_a_row_and_a_failed_tier_the_end() {
    let (rows, after, _) = run(request(), limits(8), |settings| {
        if settings.batch == 1024 {
            return Err("no memory".to_owned());
        }
        Ok(if settings.batch == 256 { 900.0 } else { 1000.0 })
    });
    assert_eq!(after.batch, 256);
    let failed: Vec<_> = rows
        .iter()
        .filter(|row| row.outcome == Outcome::Failed)
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(
        (failed[0].settings.batch, &*failed[0].reason),
        (1024, "no memory")
    );
    assert_eq!(failed[0].request_ms, None);

    let (rows, after, gain) = run(request(), limits(8), |_| Err("it does not load".to_owned()));
    assert_eq!((rows.len(), after, gain), (1, BEFORE, 0.0));
}

#[test]
fn gpu_and_threads_are_tried_where_they_are_used() {
    let gpu = Limits {
        cores: 8,
        gpu_layers: Some(31),
        gpu_holds_all: true,
    };
    let (rows, _, _) = run(request(), gpu, |_| Ok(1000.0));
    let layers: Vec<_> = rows
        .iter()
        .filter(|row| row.knob == Knob::GpuLayers)
        .map(|row| row.settings.gpu_layers)
        .collect();
    assert_eq!(layers, [Some(15), Some(0)]);
    assert!(rows.iter().all(|row| row.knob != Knob::Threads));

    let (rows, after, _) = run(request(), gpu, |settings| {
        Ok(if settings.gpu_layers == Some(0) {
            500.0
        } else {
            1000.0
        })
    });
    assert_eq!(after.gpu_layers, Some(0));
    assert!(rows.iter().any(|row| row.knob == Knob::Threads));
}

#[test]
fn requested_values_are_tried_and_an_empty_list_none() {
    let requested = TuneRequest {
        // It already uses three.
        threads: Some(vec![1, 3, 2, 2]),
        batch: Some(Vec::new()),
        ..request()
    };
    let (rows, _, _) = run(requested, limits(2), |_| Ok(1000.0));
    let tried: Vec<_> = rows
        .iter()
        .filter(|row| row.knob == Knob::Threads)
        .map(|row| row.settings.threads)
        .collect();
    assert_eq!(tried, [1, 2]);
    assert!(rows.iter().all(|row| row.knob != Knob::Batch));
}

#[test]
fn a_small_context_shortens_the_test_request() {
    for context in [256, 512, 1024, 2048, 8192] {
        let fitting = request().fitting(context);
        let bench = fitting.measurement();
        assert_eq!(bench.beyond(fitting.depth, context), None, "{context}");
        assert_eq!(bench.check(), Ok(()), "{context}");
    }
    assert_eq!(request().fitting(8192), request());
}

#[test]
fn impossible_values_are_refused() {
    for (request, part) in [
        (
            TuneRequest {
                threads: Some(vec![0]),
                ..request()
            },
            "`threads` is 0",
        ),
        (
            TuneRequest {
                batch: Some(vec![1]),
                ..request()
            },
            "`batch` is 1",
        ),
        (
            TuneRequest {
                gpu_layers: Some(vec![1; 33]),
                ..request()
            },
            "at most 32",
        ),
        (
            TuneRequest {
                runs: 0,
                ..request()
            },
            "`runs` is 0",
        ),
    ] {
        let wrong = request.check().unwrap_err();
        assert!(wrong.contains(part), "{wrong}");
    }
}

#[test]
fn the_outcome_names_what_has_changed() {
    let after = Settings {
        threads: 4,
        gpu_layers: Some(0),
        ..BEFORE
    };
    assert_eq!(
        TuneReport::sentence(BEFORE, after, 0.125, true),
        "threads 4 instead of automatic, GPU layers 0 instead of automatic: 12 % less time. Saved in config.toml."
    );
    assert!(
        TuneReport::sentence(BEFORE, BEFORE, 0.0, false)
            .starts_with("The tier's settings are already")
    );
}

proptest! {
    /// Whatever the candidates take and however many fail: the search ends, tries nothing twice in a stage, never uses all
    /// cores by itself, and its result was measured, is faster than the tier's settings, and has the same cache type.
    #[test]
    fn a_search_ends_with_its_best_result(
        cores in 1u16..32,
        gpu in proptest::option::of(0u32..60),
        all in any::<bool>(),
        times in proptest::collection::vec(proptest::option::weighted(0.8, 1.0f64..10_000.0), 1..40),
        noise in 0.0f64..0.5,
    ) {
        let limits = Limits { cores, gpu_layers: gpu, gpu_holds_all: all };
        let mut search = Search::new(request(), BEFORE, limits);
        let mut tried = 0;
        while let Some((knob, settings)) = search.next_candidate() {
            prop_assert!(settings.threads == 0 || settings.threads < cores.max(2));
            let time = times[tried % times.len()];
            tried += 1;
            prop_assert!(tried < 100);
            prop_assert!(search.expected() >= 1);
            let threads = if settings.threads == 0 { (cores - 1).max(1) } else { settings.threads };
            search.record(time.map(|ms| taking(ms, noise, threads)).ok_or_else(|| format!("{knob:?}")));
        }
        let (rows, after, gain) = search.finish();
        prop_assert_eq!(rows.len(), tried);
        for (at, row) in rows.iter().enumerate() {
            let twice = rows[..at].iter().any(|other| other.knob == row.knob && other.settings == row.settings);
            prop_assert!(!twice);
        }
        prop_assert_eq!(after.kv_cache, KvCache::F16);
        if after == BEFORE {
            prop_assert_eq!(gain, 0.0);
        } else {
            prop_assert!(gain > LEAST_GAIN);
            let checks: Vec<_> = rows.iter().filter(|row| row.knob == Knob::Check).collect();
            prop_assert_eq!(checks.len(), 2);
            prop_assert_eq!(checks[1].settings, after);
            prop_assert!(checks[1].request_ms.unwrap().median < checks[0].request_ms.unwrap().median);
        }
    }
}
