use super::*;
use crate::{budget::gib, units::file_size};

const MEMORY: u64 = 100_000_000_000;

fn machine(ram: u64, disk: Option<u64>) -> Machine {
    Machine {
        memory_bandwidth: Some(MEMORY),
        disk_bandwidth: disk,
        ..Machine::mac(ram * GIB)
    }
}

fn estimate(model: &ModelAccount, machine: &Machine) -> Option<SpeedEstimate> {
    verdict(model, (4096, KvCache::F16), machine, &[]).speed
}

#[test]
fn a_dense_model_reads_weights_and_half_a_context_per_token() {
    let model = accounts::qwen35_9b(5_680_522_464);
    let speed = estimate(&model, &machine(16, None)).unwrap();
    let cache = model.kv.bytes(2048, KvCache::F16);
    let row = model.embedding_bytes / 248_320;
    assert_eq!(speed.active_bytes, model.dense_bytes + row + cache);
    assert_eq!(speed.paged_bytes, 0);
    let fastest = MEMORY as f64 / speed.active_bytes as f64;
    assert!(speed.low < speed.high && speed.high < fastest, "{speed:?}");
    assert!((speed.high / fastest - 0.9).abs() < 1e-3, "{speed:?}");
}

#[test]
fn a_tied_output_is_read_whole_and_layer_embeddings_by_row() {
    let tied = accounts::smollm2_135m();
    let speed = estimate(&tied, &machine(16, None)).unwrap();
    let cache = tied.kv.bytes(2048, KvCache::F16);
    assert_eq!(
        speed.active_bytes,
        tied.dense_bytes + tied.embedding_bytes + cache
    );
    let per_layer = ModelAccount {
        per_layer_embedding_bytes: 49_152 * 7,
        ..tied
    };
    let with_rows = estimate(&per_layer, &machine(16, None)).unwrap();
    assert_eq!(with_rows.active_bytes, speed.active_bytes + 7);
}

#[test]
fn a_mixture_reads_only_the_experts_of_a_token() {
    let model = accounts::qwen35_35b(11_391_613_568);
    let speed = estimate(&model, &machine(16, None)).unwrap();
    let rest =
        model.dense_bytes + model.embedding_bytes / 248_320 + model.kv.bytes(2048, KvCache::F16);
    assert_eq!(
        speed.active_bytes - rest,
        model.expert_bytes / 256 * 8 + model.expert_bytes % 256 * 8 / 256
    );
}

#[test]
fn experts_on_disk_are_limited_by_its_bandwidth() {
    let model = accounts::qwen35_35b(22_016_023_168);
    assert_eq!(estimate(&model, &machine(16, None)), None);
    let slow = estimate(&model, &machine(16, Some(1_000_000_000))).unwrap();
    let fast = estimate(&model, &machine(16, Some(5_000_000_000))).unwrap();
    let resident = estimate(&model, &machine(32, None)).unwrap();
    assert!(slow.paged_bytes > 0 && slow.paged_bytes < slow.active_bytes);
    assert_eq!(resident.paged_bytes, 0);
    assert!(slow.high < fast.high && fast.high < resident.high);
    assert!(slow.low < fast.low && fast.low < resident.low);
}

#[test]
fn the_range_follows_from_its_factors() {
    let disk = 2_000_000_000;
    let close =
        |left: f64, right: f64| assert!((left / right - 1.0).abs() < 1e-6, "{left} {right}");
    let seconds = |bytes: u64, rate: u64, part: f64| bytes as f64 / rate as f64 / part;
    let dense = estimate(&accounts::smollm2_135m(), &machine(16, None)).unwrap();
    close(1.0 / dense.low, seconds(dense.active_bytes, MEMORY, 0.4));
    close(1.0 / dense.high, seconds(dense.active_bytes, MEMORY, 0.9));
    let mixture = accounts::qwen35_35b(22_016_023_168);
    let experts = estimate(&mixture, &machine(16, Some(disk))).unwrap();
    let (active, paged) = (experts.active_bytes, experts.paged_bytes);
    close(
        1.0 / experts.low,
        seconds(active, MEMORY, 0.25) + seconds(paged, disk, 0.7),
    );
    close(
        1.0 / experts.high,
        seconds(active, MEMORY, 0.9) + seconds(paged, disk, 2.0),
    );
    // A dense model on a small machine: at worst all that is beyond the budget, at best nothing.
    let model = accounts::qwen35_9b(5_680_522_464);
    let small = estimate(&model, &machine(8, Some(disk))).unwrap();
    let (active, paged) = (small.active_bytes, small.paged_bytes);
    assert!(paged > 0 && paged < GIB);
    close(
        1.0 / small.low,
        seconds(active, MEMORY, 0.4) + seconds(paged, disk, 0.5),
    );
    close(1.0 / small.high, seconds(active, MEMORY, 0.9));
}

#[test]
fn a_measured_answer_raises_the_least_speed_of_larger_models() {
    let small = accounts::smollm2_135m();
    let per_token = small.dense_bytes + small.embedding_bytes;
    let decode = DecodeRate::from_measured(&small, 0.7 * MEMORY as f64 / per_token as f64);
    let fast = Machine {
        decode,
        ..machine(16, Some(MEMORY))
    };
    let low = |model: &ModelAccount, machine: &Machine| {
        let speed = estimate(model, machine).unwrap();
        assert!(speed.low <= speed.high);
        speed.low
    };
    let dense = accounts::qwen35_9b(5_680_522_464);
    let mixture = accounts::qwen35_35b(11_391_613_568);
    for model in [&dense, &mixture] {
        let raised = low(model, &fast) / low(model, &machine(16, Some(MEMORY)));
        assert!((raised - 0.7 * 0.8 / 0.4).abs() < 0.01, "{raised}");
    }
    // Slower than published figures: the range stays. Of a larger model's answers: says nothing of a smaller one.
    let slow = Machine {
        decode: DecodeRate::from_measured(&small, 1.0),
        ..fast
    };
    assert_eq!(low(&dense, &slow), low(&dense, &machine(16, Some(MEMORY))));
    let larger = Machine {
        decode: DecodeRate::from_measured(&dense, 100.0),
        ..fast
    };
    assert_eq!(low(&small, &larger), low(&small, &machine(16, None)));
    assert_eq!(DecodeRate::from_measured(&mixture, 30.0), None);
}

#[test]
fn a_disturbed_measurement_changes_no_speed_by_much() {
    let of = |model: &ModelAccount, chip, read| {
        let mac = Machine::mac(16 * GIB).with_memory(chip, read, None);
        estimate(model, &mac).map(|speed| (speed.low, speed.high))
    };
    let dense = accounts::qwen35_9b(5_680_522_464);
    let speed = |chip, read| of(&dense, chip, read);
    let (chip, busy) = (Some(120_000_000_000), Some(260_000_000));
    let (low, high) = speed(chip, None).unwrap();
    assert!(low > 7.0 && high < 23.0, "{low} to {high}");
    // Measured from a cache: a figure above the chip's does not count.
    assert_eq!(speed(chip, Some(900_000_000_000)), Some((low, high)));
    assert_eq!(speed(None, None), None);
    // On a busy machine: a model reads a fifth of the chip's at least, of which the highest speed is nine tenths.
    for model in [dense, accounts::qwen35_35b(11_391_613_568)] {
        let (low, high) = of(&model, chip, busy).unwrap();
        assert!((low / high - 0.2 / 0.9).abs() < 1e-6, "{low} to {high}");
        assert_eq!(high, of(&model, chip, None).unwrap().1);
    }
}

#[test]
fn an_answer_corrects_a_bandwidth_that_it_proves_wrong() {
    let model = accounts::qwen35_9b(5_680_522_464);
    let decode = DecodeRate {
        bytes_per_token: 442_000_000,
        bytes_per_second: 442_000_000 * 11,
    };
    let with = |chip, read, decode| {
        let mac = Machine::mac(16 * GIB).with_memory(chip, read, decode);
        mac.memory_bandwidth.unwrap()
    };
    let (low, proved) = (Some(2_160_000_000), decode.bytes_per_second * 10 / 9);
    assert_eq!(with(None, low, None), 2_160_000_000);
    assert!(with(None, low, Some(decode)).abs_diff(proved) <= 1);
    let fast = Some(50_000_000_000);
    assert_eq!(with(None, fast, Some(decode)), 50_000_000_000);
    assert_eq!(with(fast, low, Some(decode)), 50_000_000_000);
    // A small model may be in a cache, but is better than nothing.
    let small = DecodeRate {
        bytes_per_token: 92_000_000,
        ..decode
    };
    assert_eq!(with(None, low, Some(small)), 2_160_000_000);
    assert!(with(None, None, Some(small)).abs_diff(proved) <= 1);
    let mac = Machine::mac(16 * GIB).with_memory(None, low, Some(decode));
    let speed = estimate(&model, &mac).unwrap();
    assert!(speed.low <= speed.high, "{speed:?}");
}

#[test]
fn a_mixture_on_disk_has_a_speed_by_each_way_to_page_it() {
    let model = accounts::qwen35_35b(22_016_023_168);
    let ways = |machine: &Machine| {
        let verdict = verdict(&model, (4096, KvCache::F16), machine, &[]);
        let speed = verdict.speed.unwrap();
        (speed, verdict.paging_speeds)
    };
    let (speed, found) = ways(&machine(16, Some(1_000_000_000)));
    let names: Vec<_> = found.iter().map(|way| way.paging).collect();
    assert_eq!(names, [Paging::Cache, Paging::Advise, Paging::Mmap]);
    assert!(found.is_sorted_by(|one, next| one.low > next.low));
    assert_eq!((found[1].low, found[1].high), (speed.low, speed.high));
    assert_eq!(ways(&machine(64, Some(1_000_000_000))).1, []);
}

#[test]
fn a_refused_model_has_no_speed() {
    let refused = accounts::qwen35_9b(9_527_502_048);
    assert_eq!(estimate(&refused, &machine(8, Some(MEMORY))), None);
}

#[test]
fn no_speed_is_estimated_without_a_bandwidth_of_memory() {
    let unmeasured = Machine::mac(16 * GIB);
    assert_eq!(estimate(&accounts::smollm2_135m(), &unmeasured), None);
}

#[test]
fn the_error_is_how_far_the_range_missed() {
    let estimate = SpeedEstimate {
        low: 10.0,
        high: 20.0,
        active_bytes: 1,
        paged_bytes: 0,
        measured: None,
        error: None,
    };
    let error = |measured| estimate.with_measured(measured).error.unwrap();
    assert!((error(8.0) + 0.2).abs() < 1e-9);
    assert!(error(10.0).abs() < 1e-9 && error(15.0).abs() < 1e-9 && error(20.0).abs() < 1e-9);
    assert!((error(25.0) - 0.25).abs() < 1e-9);
    assert_eq!(estimate.with_measured(8.0).measured, Some(8.0));
}

/// An M4: 120 GB/s nominal, of which all cores but one read about 100, and a disk with 3 GB/s.
#[test]
fn the_document_has_what_a_16_gb_mac_is_told_of_the_35b() {
    let machine = machine(16, Some(3_000_000_000));
    let page = include_str!("../../../../../../docs/paging.md");
    let mut missing = String::new();
    for offer in accounts::qwen35_35b_offers() {
        let model = accounts::qwen35_35b(offer.size_bytes);
        let verdict = verdict(&model, (12_288, KvCache::Q4_0), &machine, &[]);
        let line = |what| verdict.lines.iter().find(|line| line.what == what);
        let bytes = |what| line(what).map_or(0, |line| line.bytes);
        let held = bytes(LineKind::ResidentExperts);
        let speed = verdict.speed.unwrap();
        let row = format!(
            "| {} | {} | `{}` | {} of {} | {} | {:.0} to {:.0} tok/s |",
            offer.quant,
            file_size(offer.size_bytes),
            verdict.placement.as_str(),
            gib(held),
            gib(held + bytes(LineKind::PagedExperts)),
            file_size(speed.paged_bytes),
            speed.low,
            speed.high,
        );
        if !page.contains(&row) {
            missing += &format!("{row}\n");
        }
    }
    assert_eq!(missing, "");
}
