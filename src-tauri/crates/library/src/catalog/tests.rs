use super::*;
use crate::reference::{Reference, Repository};
use std::{collections::HashSet, fmt::Write, fs, path::Path};
use tierbar_core::{
    budget::{GIB, Placement, gib},
    fit::LineKind,
};

fn shipped() -> Catalog {
    serde_json::from_str(include_str!("../catalog.json")).unwrap()
}

#[test]
fn the_catalog_has_the_supported_version() {
    assert_eq!(shipped().version, VERSION);
    assert_eq!(*catalog(), shipped());
}

#[test]
fn catalog_names_are_unique() {
    let catalog = shipped();
    let mut names = HashSet::new();
    for entry in &catalog.models {
        for name in std::iter::once(&entry.id).chain(&entry.aliases) {
            assert!(names.insert(name.to_lowercase()), "{name} is named twice");
            assert_eq!(catalog.find(name), Some(entry));
            assert_eq!(catalog.find(&name.to_uppercase()), Some(entry));
        }
    }
    assert_eq!(catalog.find("gpt-4"), None);
}

#[test]
fn every_tier_has_one_default_model() {
    let catalog = shipped();
    for (tier, id) in [
        ("fast", "gemma-4-e2b"),
        ("primary", "gemma-4-e4b"),
        ("heavy", "qwen3.5-35b-a3b"),
    ] {
        let defaults = catalog.models.iter();
        let defaults: Vec<_> = defaults
            .filter(|entry| entry.default && entry.tier.as_deref() == Some(tier))
            .map(|entry| entry.id.as_str())
            .collect();
        assert_eq!(defaults, [id]);
    }
    for name in [
        "gemma4:e2b",
        "gemma4:e4b",
        "gemma4:26b",
        "qwen3.5:35b-a3b",
        "qwen3.5:9b",
        "qwen3:30b-a3b",
        "nomic-embed-text",
        "smollm2:135m",
        "qwen3.6:35b-a3b",
        "gemma4:31b",
        "qwen3.5:27b",
        "qwen3.5:4b",
        "qwen3:32b",
        "llama3.1:8b",
        "deepseek-r1:14b",
    ] {
        assert!(catalog.find(name).is_some(), "{name}");
    }
    for quant in ["UD-IQ2_M", "UD-IQ3_XXS", "Q4_K_M", "ud-iq2_m"] {
        let entry = catalog.find("qwen3.5-35b-a3b").unwrap();
        assert!(entry.quant(quant).is_some(), "{quant}");
    }
}

#[test]
fn catalog_facts_are_plausible() {
    let hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    for entry in shipped().models {
        let id = &entry.id;
        assert!(Repository::new(&entry.repository).is_ok(), "{id}");
        assert!(
            entry.revision.as_ref().is_none_or(|commit| hex(commit, 40)),
            "{id}"
        );
        assert!(
            !entry.quants.is_empty() && !entry.licence.is_empty(),
            "{id}"
        );
        assert!(
            entry.about.ends_with('.') && entry.about.split(". ").count() <= 2,
            "{id}"
        );
        assert!(!entry.default || entry.tier.is_some(), "{id}");
        assert_eq!(
            entry.architecture.is_some(),
            entry.kind == ModelKind::Chat,
            "{id}"
        );
        for quant in &entry.quants {
            let file = &quant.file;
            assert!(
                file.ends_with(".gguf") && file.contains(&quant.quant),
                "{file}"
            );
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            assert!(file.chars().all(plain) && !file.contains(".."), "{file}");
            assert!(
                quant.size_bytes.is_none_or(|size| size > 1_000_000),
                "{file}"
            );
            assert!(
                quant.sha256.as_ref().is_none_or(|sum| hex(sum, 64)),
                "{file}"
            );
            assert!(
                Reference::parse(&entry.reference(quant), |_| None).is_ok(),
                "{file}"
            );
        }
        if let Some(projector) = &entry.projector {
            let has = |modality| projector.input_modalities.contains(&modality);
            assert_eq!(projector.vision.is_some(), has(Modality::Image), "{id}");
            assert_eq!(projector.audio.is_some(), has(Modality::Audio), "{id}");
            // Encoding takes some hundred megabytes: none would be an unknown kind of encoder.
            let encoding = projector.load_bytes(16_384, 512) - projector.size_bytes;
            assert!((100_000_000..GIB).contains(&encoding), "{id}: {encoding}");
        }
        let sums: Vec<_> = entry
            .quants
            .iter()
            .filter_map(|quant| quant.sha256.as_ref())
            .collect();
        let distinct: HashSet<_> = sums.iter().collect();
        assert_eq!(sums.len(), distinct.len(), "{id}");
        let Some(facts) = &entry.architecture else {
            continue;
        };
        assert!(
            facts.layers > 0 && facts.heads >= facts.kv_heads && facts.kv_heads > 0,
            "{id}"
        );
        assert!(facts.experts >= facts.experts_used, "{id}");
        assert_eq!(facts.experts > 0, facts.expert_parameters > 0, "{id}");
        let parts = facts.expert_parameters
            + facts.per_layer_embedding_parameters
            + u64::from(facts.embedding) * u64::from(facts.vocabulary);
        assert!(parts < facts.parameters, "{id}");
        for quant in &entry.quants {
            let Some(size) = quant.size_bytes else {
                continue;
            };
            // Between two and nine bits per weight: neither a wrong digit nor another model's file.
            assert!(
                (2..9).contains(&(size * 8 / facts.parameters)),
                "{}",
                quant.file
            );
        }
    }
}

#[test]
fn published_figures_are_plausible_and_have_sources() {
    let catalog = shipped();
    let is_date = |text: &str| text.len() == 10 && text.split('-').count() == 3;
    assert!(is_date(&catalog.date), "{}", catalog.date);
    for entry in catalog.models {
        let id = &entry.id;
        assert_eq!(entry.inputs.first(), Some(&Modality::Text), "{id}");
        let distinct: HashSet<_> = entry.scores.iter().map(|score| &score.benchmark).collect();
        assert_eq!(distinct.len(), entry.scores.len(), "{id}");
        for score in &entry.scores {
            assert!((0.0..=100.0).contains(&score.score), "{id}: {score:?}");
        }
        for speed in &entry.speeds {
            assert!(speed.chip.starts_with("Apple M"), "{id}: {speed:?}");
            assert!(
                (1.0..500.0).contains(&speed.tokens_per_second),
                "{id}: {speed:?}"
            );
            let sizes = [8, 16, 18, 24, 32, 36, 48, 64, 96, 128];
            assert!(
                speed.ram_gb.is_none_or(|ram| sizes.contains(&ram)),
                "{id}: {speed:?}"
            );
        }
        let sources = entry.scores.iter().map(|score| &score.source);
        let sources = sources.chain(entry.speeds.iter().map(|speed| &speed.source));
        for source in sources {
            assert!(source.starts_with("https://"), "{id}: {source}");
        }
    }
}

#[test]
fn a_repository_with_a_quant_means_an_entry() {
    let catalog = shipped();
    let found = |repository, quant| {
        let (entry, quant) = catalog.offered(repository, quant)?;
        Some((entry.id.as_str(), quant.quant.as_str()))
    };
    let gemma = "unsloth/gemma-4-E4B-it-GGUF";
    assert_eq!(found(gemma, "q4_k_m"), Some(("gemma-4-e4b", "Q4_K_M")));
    let lower = gemma.to_lowercase();
    assert_eq!(found(&lower, "Q4_K_M"), found(gemma, "Q4_K_M"));
    assert_eq!(found(gemma, "Q5_K_M"), None);
    assert_eq!(found("unsloth/other-GGUF", "Q4_K_M"), None);
}

#[test]
fn an_estimated_account_adds_up_to_the_file_size() {
    for entry in shipped().models {
        for quant in &entry.quants {
            let Some(account) = entry.account(quant) else {
                continue;
            };
            let classes = account.dense_bytes
                + account.embedding_bytes
                + account.per_layer_embedding_bytes
                + account.expert_bytes;
            assert_eq!(classes, quant.size_bytes.unwrap(), "{}", quant.file);
            assert_eq!(
                account.expert_bytes > 0,
                account.experts > 0,
                "{}",
                quant.file
            );
        }
    }
}

#[test]
fn spared_weights_keep_5_5_bits_in_a_2_bit_mixture() {
    let catalog = shipped();
    let entry = catalog.find("qwen3.5-35b-a3b").unwrap();
    let account = entry.account(entry.quant("UD-IQ2_M").unwrap()).unwrap();
    assert_eq!(account.embedding_bytes, 248_320 * 2048 / 16 * 11);
    let fine = entry.account(entry.quant("Q8_0").unwrap()).unwrap();
    assert!(fine.embedding_bytes > 248_320 * 2048);
}

#[test]
fn each_quant_has_a_verdict_and_one_may_be_recommended() {
    let models = catalog().wire(&Machine::mac(16 * GIB));
    assert_eq!(models.len(), catalog().models.len());
    for model in &models {
        let recommended: Vec<_> = model
            .quants
            .iter()
            .filter(|file| file.recommended)
            .collect();
        let is_refused = |file: &OfferedFile| {
            let fit = file.fit.as_ref();
            fit.is_some_and(|fit| fit.placement == Placement::Refused)
        };
        let runs = !model.quants.iter().all(is_refused);
        assert_eq!(recommended.len(), usize::from(runs), "{}", model.id);
        for file in &model.quants {
            assert_eq!(
                file.fit.is_some(),
                model.kind == ModelKind::Chat,
                "{}",
                file.file
            );
            assert!(
                file.fit.as_ref().is_none_or(|fit| fit.estimated),
                "{}",
                file.file
            );
            assert!(!file.installed);
        }
    }
    let heavy = models
        .iter()
        .find(|model| model.id == "qwen3.5-35b-a3b")
        .unwrap();
    let chosen = heavy.quants.iter().find(|file| file.recommended).unwrap();
    assert_eq!(chosen.quant, "UD-IQ2_M");
    let fit = heavy.quants[0].fit.as_ref().unwrap();
    assert_eq!(fit.placement, Placement::Resident);
    assert!(
        fit.lines
            .iter()
            .any(|line| line.what == LineKind::ResidentExperts)
    );
}

#[test]
fn catalog_names_are_valid_references() {
    let parse =
        |text| Reference::parse(text, |name| Some(catalog().find(name)?.id.clone())).unwrap();
    let of = |quant: Option<&str>| Reference::Catalog {
        id: "gemma-4-e4b".to_owned(),
        quant: quant.map(str::to_owned),
    };
    assert_eq!(parse("gemma4:e4b"), of(None));
    assert_eq!(parse("gemma-4-e4b:Q4_K_M"), of(Some("Q4_K_M")));
}

/// The verdict on every model and quant for Macs of these sizes, as `verdicts.md` has it.
#[test]
fn the_table_of_verdicts_is_up_to_date() {
    let table = table();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/verdicts.md");
    if std::env::var_os("TIERBAR_WRITE_VERDICTS").is_some() {
        fs::write(&path, &table).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap_or_default(),
        table,
        "{} is out of date: run TIERBAR_WRITE_VERDICTS=1 cargo quick-test -p tierbar-library verdicts",
        path.display()
    );
}

const MACHINES: [u64; 6] = [8, 16, 24, 32, 48, 64];

fn table() -> String {
    let mut text = String::from(
        "# What fits which Mac\n\n\
         <!-- Written by the test of src-tauri/crates/library/src/catalog/tests.rs. Do not edit. -->\n\n\
         Every model of the catalog on Macs of 8 to 64 GB, with the context and the KV cache that Tierbar chooses there (the\n\
         profile `balanced`). Models may use 5, 12, 20, 28, 44 and 60 GiB of these.\n\n\
         - *Memory* is what the model uses of that, with the app and a slot for a small embedder, and with its projector for images and\n\
           sound where the catalog lists one and there is room. *Disk* is what is read as needed.\n\
         - *GPU* counts layers, with the output as one, within the Metal working set of current systems.\n\
         - *Largest context* is for the same placement; for a refused model, the largest with which it would run.\n\
         - The figures come from the published architecture and the file's size, until a file's header has been read.\n",
    );
    let chats = catalog()
        .models
        .iter()
        .filter(|entry| entry.architecture.is_some());
    for entry in chats {
        let _ = write!(
            text,
            "\n## {}\n\n\
             | quant        | Mac   | placement | context | cache | memory    | disk      | GPU   | largest context |\n\
             |--------------|-------|-----------|---------|-------|-----------|-----------|-------|-----------------|\n",
            entry.name,
        );
        for at in 0..entry.quants.len() {
            for machine in MACHINES {
                let model = entry.wire(&Machine::mac(machine * GIB));
                row(&mut text, machine, &model.quants[at]);
            }
        }
    }
    text
}

fn row(text: &mut String, machine: u64, file: &OfferedFile) {
    let fit = file.fit.as_ref().unwrap();
    let placement = fit.placement.as_str();
    let gpu = fit.gpu.map_or("–".to_owned(), |gpu| {
        format!("{}/{}", gpu.layers, gpu.layers_all)
    });
    let paged = fit.lines.iter().filter(|line| line.what.is_paged());
    let paged: u64 = paged.map(|line| line.bytes).sum();
    let largest = fit.largest_context_tokens;
    let largest = largest.map_or("–".to_owned(), |tokens| tokens.to_string());
    let _ = writeln!(
        text,
        "| {:<12} | {:<5} | {placement:<9} | {:>7} | {:<5} | {:>9} | {:>9} | {gpu:>5} | {largest:>15} |",
        file.quant,
        format!("{machine} GB"),
        fit.context_tokens,
        fit.kv_cache.as_str(),
        gib(fit.total_bytes),
        if paged > 0 {
            gib(paged)
        } else {
            "–".to_owned()
        },
    );
}

#[test]
fn a_file_is_called_by_its_models_names() {
    let names = |file: &str| catalog().names_of(&tierbar_core::ModelId(file.to_owned()));
    assert_eq!(
        names("gemma-4-E4B-it-UD-Q4_K_XL"),
        ["gemma-4-e4b", "gemma4:e4b", "gemma4"]
    );
    assert!(names("gemma-4-e4b").is_empty(), "no file");
}

#[test]
fn a_misspelled_model_is_near_its_name() {
    for (wanted, name) in [
        ("gemma-4-e4", "gemma-4-e4b"),
        ("smollm2-135", "smollm2-135m"),
        ("gemma4-e4b", "gemma-4-e4b"),
    ] {
        let found = tierbar_core::nearest::nearest(wanted, catalog().names());
        assert_eq!(found, Some(name), "{wanted}");
    }
}

#[test]
fn a_header_of_another_architecture_is_another_models() {
    let entry = catalog().find("qwen3.5-35b-a3b").unwrap();
    let facts = entry.architecture.as_ref().unwrap();
    let mut account = facts.account(&entry.name, "UD-IQ2_M", 1 << 33);
    assert_eq!(entry.mismatch(&account), None);
    account.architecture = "qwen2".to_owned();
    let error = entry.mismatch(&account).unwrap();
    assert!(error.message.contains("qwen2") && error.message.contains("qwen35moe"));
    // Of a model that the engine does not run, no architecture is known.
    let unknown = catalog().find("nomic-embed-text-v1.5").unwrap();
    assert_eq!(unknown.mismatch(&account), None);
}
