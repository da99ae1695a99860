use super::*;
use crate::bench::{BenchMemory, Figure};
use tierbar_core::{
    ModelAccount, ModelId, ModelKind,
    budget::{GIB, Line, LineKind, Placement},
    config::{Choice, KvCache, TierConfig},
    fit::Keeper,
    journal::LogEvent,
    model::KvAccount,
    sampling::{ModelSampling, Sampling},
    status::{GuardStatus, Speed},
};

/// Stands for all that a user wrote.
const SECRET: &str = "secret";

fn account() -> ModelAccount {
    ModelAccount {
        architecture: "llama".to_owned(),
        kind: ModelKind::Chat,
        name: Some(SECRET.to_owned()),
        quant: "Q4_1".to_owned(),
        file_bytes: 98_300_000,
        parts: 1,
        dense_bytes: 66_000_000,
        embedding_bytes: 30_081_024,
        per_layer_embedding_bytes: 0,
        expert_bytes: 0,
        feed_forward_bytes: 0,
        largest_layer_bytes: 0,
        parameters: 134_515_008,
        tied_output: true,
        layers: 30,
        heads: 9,
        kv_heads: 3,
        experts: 0,
        experts_used: 0,
        embedding: 576,
        vocabulary: 49_152,
        context_train: 8192,
        kv: KvAccount {
            full_elements_per_token: 11_520,
            sliding_elements_per_cell: 0,
            window: 0,
            state_bytes: 0,
        },
        chat_template: true,
        thinking: false,
        tools: false,
        sampling: Sampling::default(),
    }
}

fn id(name: &str) -> TierId {
    TierId::new(name).unwrap()
}

fn tier(name: &str) -> TierStatus {
    TierStatus {
        model: Some(ModelId("/home/secret/secret-7b".to_owned())),
        pid: Some(1),
        footprint_bytes: Some(GIB),
        plan: Some(LoadPlan {
            placement: Placement::Cache,
            lines: vec![Line {
                what: LineKind::ExpertCache,
                bytes: 2 * GIB,
            }],
            context_tokens: 4096,
            kind: tierbar_core::TierKind::Generative,
        }),
        context_tokens: 4096,
        reason: Some(SECRET.to_owned()),
        ..TierStatus::new(id(name), TierState::Ready)
    }
}

fn status() -> Status {
    Status {
        version: "1.2.3".to_owned(),
        url: "http://secret:1".to_owned(),
        ram: Ram::default(),
        swap: Swap {
            used_bytes: GIB,
            growth_bytes_per_minute: -5 * 1024 * 1024,
        },
        speed: Speed::default(),
        budget: BudgetStatus::default(),
        guard: GuardStatus {
            why: Some(SECRET.to_owned()),
            ..GuardStatus::default()
        },
        tiers: vec![tier("fast"), tier("secret")],
        downloads: Vec::new(),
        models_revision: 0,
        config_revision: 0,
        notices: vec![SECRET.to_owned()],
        notifications: Vec::new(),
        refused_origins: vec![tierbar_core::status::RefusedOrigin {
            origin: SECRET.to_owned(),
            since_ms: 0,
        }],
    }
}

fn model() -> LibraryModel {
    LibraryModel {
        id: ModelId("/home/secret/secret-7b".to_owned()),
        path: "/home/secret/secret-7b.gguf".to_owned(),
        size_bytes: 1,
        keeper: Keeper::Tierbar,
        account: Some(account()),
        error: Some(SECRET.to_owned()),
        reference: Some("secret/secret".to_owned()),
        sha256: Some(SECRET.to_owned()),
        projector: Some("/secret".to_owned()),
        projector_bytes: None,
        projector_error: Some(SECRET.to_owned()),
        projector_offer: None,
        input_modalities: Vec::new(),
        tiers: Vec::new(),
        fit: None,
        profiles: Vec::new(),
        sampling: ModelSampling::default(),
        marks: Vec::new(),
    }
}

fn report(of: &str) -> BenchReport {
    let figure = Figure {
        median: 20.0,
        low: 19.0,
        high: 21.0,
    };
    BenchReport {
        version: "1".to_owned(),
        taken_at: String::new(),
        tier: id("fast"),
        model: ModelId(of.to_owned()),
        context_tokens: 4096,
        settings: Settings::for_tier(&TierConfig::default()),
        threads_used: 7,
        prompt_tokens: 512,
        answer_tokens: 64,
        runs: 3,
        rows: vec![
            BenchRow {
                depth: 512,
                prefill: None,
                decode: Some(figure),
                first_token_ms: None,
                skipped: Some(SECRET.to_owned()),
            },
            BenchRow {
                depth: 4096,
                prefill: None,
                decode: None,
                first_token_ms: None,
                skipped: Some(SECRET.to_owned()),
            },
        ],
        paging: Vec::new(),
        load_ms: Some(1500.0),
        memory: BenchMemory {
            weights_mapped_bytes: 0,
            weights_bytes: 0,
            kv_bytes: 0,
            compute_bytes: 0,
            footprint_bytes: None,
        },
        disturbed: 0,
    }
}

fn entry(number: u64, at_ms: u64, kind: Kind, tier: &str) -> Entry {
    let model = ModelId(SECRET.to_owned());
    Entry {
        id: number,
        at_ms,
        what: LogEvent::for_tier(kind, &id(tier), Some(&model), SECRET),
    }
}

fn config() -> Config {
    let tier = TierConfig {
        model: "/home/secret/secret-7b".to_owned(),
        draft_model: SECRET.to_owned(),
        kv_cache: Choice::Fixed(KvCache::Q8_0),
        ..TierConfig::default()
    };
    let tiers = [(id("fast"), tier.clone()), (id("secret"), tier)];
    Config {
        tiers: tiers.into(),
        ..Config::default()
    }
}

fn diagnosed(benched: &str, log: &[Entry], now_ms: u64) -> Diagnosis {
    let benches = BTreeMap::from([(id("fast"), report(benched))]);
    Diagnosis::from_sources(
        Sources {
            machine: MachineFigures {
                system: "macOS 26.1".to_owned(),
                processor: "Apple M4".to_owned(),
                cores: 10,
                fast_cores: Some(4),
                sync_ms: Some(4.25),
                ..MachineFigures::default()
            },
            tierbar: HostFigures::default(),
            status: &status(),
            config: &config(),
            models: &[model()],
            benches: &benches,
            log,
        },
        now_ms,
    )
}

#[test]
fn nothing_that_a_user_wrote_is_passed_on() {
    let log = [entry(1, 0, Kind::Load, "secret")];
    let figures = diagnosed("/home/secret/secret-7b", &log, 1);
    let (text, json) = (
        figures.to_string(),
        serde_json::to_string(&figures).unwrap(),
    );
    for written in [text, json] {
        assert!(
            !written.contains(SECRET) && !written.contains("/home"),
            "{written}"
        );
        assert!(written.contains("tier 2"), "{written}");
    }
}

#[test]
fn figures_are_lines_of_one_text() {
    let log = [
        entry(4, 9_500, Kind::Ready, "fast"),
        entry(3, 8_000, Kind::Load, "fast"),
        entry(2, 7_000, Kind::Failure, "fast"),
        entry(1, 6_000, Kind::Load, "fast"),
    ];
    let text = diagnosed("/home/secret/secret-7b", &log, 10_000).to_string();
    for line in [
        "Tierbar 1.2.3",
        "macOS 26.1 on , Apple M4; 10 cores, 4 of them fast",
        "a write is safe on disk after 4.2 ms",
        "events of the last day: failure 1, load 2, ready 1",
        "fast: ready, engine embedded, context 4096 tokens",
        "  settings: threads 0, batch 512, GPU layers auto, KV cache q8_0, paging auto",
        "  plan: cache, 2.0 GiB: expert_cache 2.0 GiB",
        "  loads of the last day: 1.5 s",
        "  measured with 7 threads, loaded in 1.5 s",
        "    depth 512: prefill – tok/s, decode 20.0 [19.0–21.0] tok/s, first token after – ms",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("depth 4096"), "{text}");
    assert!(
        text.contains("swap 1.0 GiB used and −5 MiB a minute"),
        "{text}"
    );
}

#[test]
fn a_measurement_of_another_model_is_left_out() {
    assert!(
        diagnosed("/home/secret/secret-7b", &[], 0).tiers[0]
            .bench
            .is_some()
    );
    assert!(diagnosed("other", &[], 0).tiers[0].bench.is_none());
}

#[test]
fn only_the_last_day_counts() {
    let log = [entry(1, 0, Kind::Load, "fast")];
    assert_eq!(diagnosed("", &log, DAY_MS).events.get("load"), Some(&1));
    assert_eq!(diagnosed("", &log, DAY_MS + 1).events.get("load"), None);
}

#[test]
fn a_file_passes_on_no_text_and_no_exact_size() {
    assert!(ARCHITECTURES.is_sorted());
    assert_eq!(known_architecture("qwen35moe"), "qwen35moe");
    for text in ["secret", "two words", "", "\u{1b}[2J"] {
        assert_eq!(known_architecture(text), "unknown");
    }
    for (size, rounded) in [
        (0, 0),
        (999, 999),
        (1_004, 1_000),
        (1_005, 1_010),
        (20_482_113_999, 20_500_000_000),
    ] {
        assert_eq!(round(size), rounded);
    }
    assert_eq!(without_controls("Apple\u{1b}[2J M4\n"), "Apple[2J M4");
}
