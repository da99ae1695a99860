use super::*;
use crate::catalog::catalog;
use std::{collections::HashSet, fmt::Write, fs, path::Path};
use tierbar_core::{
    budget::{GIB, gib},
    units::file_size,
};

const MACHINES: [u64; 6] = [8, 16, 24, 32, 48, 64];

/// A disk and a memory of usual rates, so that there are speeds to tell.
fn mac(ram: u64) -> Machine {
    Machine {
        memory_bandwidth: Some(100_000_000_000),
        disk_bandwidth: Some(3_000_000_000),
        ..Machine::mac(ram * GIB)
    }
}

#[test]
fn each_machine_gets_three_different_models_that_run_well() {
    for ram in MACHINES {
        let proposed = propose(catalog(), &mac(ram));
        let names: HashSet<_> = proposed.iter().map(|one| &one.entry.id).collect();
        assert_eq!((proposed.len(), names.len()), (3, 3), "{ram}");
        for one in &proposed {
            assert!(one.runs_well, "{ram}: {} {}", one.tier, one.entry.id);
            assert!(!one.reason.is_empty());
        }
    }
}

#[test]
fn a_16_gb_mac_gets_the_default_models() {
    let proposed = propose(catalog(), &mac(16));
    let files: Vec<_> = proposed
        .iter()
        .map(|one| (one.tier, one.entry.id.as_str(), one.quant.quant.as_str()))
        .collect();
    assert_eq!(
        files,
        [
            ("fast", "gemma-4-e2b", "UD-Q4_K_XL"),
            ("primary", "gemma-4-e4b", "UD-Q4_K_XL"),
            ("heavy", "qwen3.5-35b-a3b", "UD-IQ2_M"),
        ]
    );
}

#[test]
fn a_machine_too_small_for_any_model_gets_none() {
    assert!(propose(catalog(), &mac(3)).is_empty());
}

/// What a set-up chooses for Macs of these sizes, as `setup.md` has it.
#[test]
fn the_table_of_set_ups_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/setup.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- table -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let wanted = format!("{before}<!-- table -->\n{}<!-- end -->{after}", table());
    if std::env::var_os("TIERBAR_WRITE_VERDICTS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        wanted,
        "docs/setup.md is out of date: set TIERBAR_WRITE_VERDICTS=1 and run this test"
    );
}

fn table() -> String {
    let mut text = String::from(
        "| Mac | tier | model | size | placement | context | memory | expected speed |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for ram in MACHINES {
        for one in propose(catalog(), &mac(ram)) {
            let fit = &one.fit;
            let speed = fit.speed.map_or("–".to_owned(), |speed| {
                format!("{:.0} to {:.0} tok/s", speed.low, speed.high)
            });
            let _ = writeln!(
                text,
                "| {ram} GB | {} | {} {} | {} | `{}` | {} in {} | {} | {speed} |",
                one.tier,
                one.entry.name,
                one.quant.quant,
                size(&one),
                fit.placement.as_str(),
                fit.context_tokens,
                fit.kv_cache.as_str(),
                gib(fit.total_bytes),
            );
        }
    }
    text
}

/// As it is downloaded, with its projector.
fn size(one: &TierProposal<'_>) -> String {
    let projector = one.entry.projector.as_ref();
    let projector = projector.map_or(0, |projector| projector.size_bytes);
    let model = one.quant.size_bytes;
    model.map_or("–".to_owned(), |model| file_size(model + projector))
}
