use super::*;

#[test]
fn qwen_35b_iq2_m_at_12288_tokens_is_resident_on_16_gb() {
    let model = accounts::qwen35_35b(11_391_613_568);
    let verdict = verdict(
        &model,
        (12_288, KvCache::Q4_0),
        &Machine::mac(16 * GIB),
        &[],
    );
    assert_eq!(verdict.placement, Placement::Resident);
    assert_eq!(verdict.summary, "Runs fully in memory: 11.2 of 12.0 GiB.");
    assert_eq!(verdict.warning, None);
    assert_eq!(
        line(&verdict, LineKind::KvCache),
        5760 * 12_288 + 2 * 65_863_680
    );
    let gpu = verdict.gpu.unwrap();
    assert_eq!((gpu.layers, gpu.layers_all), (41, 41));
    // Of the working set that a 16 GB M4 reports, 11.84 GiB, a little is left.
    let smaller = Machine::new(16 * GIB, Some(GIB / 10 * 118));
    let of_smaller = super::verdict(&model, (12_288, KvCache::Q4_0), &smaller, &[]);
    assert_eq!(of_smaller.gpu.unwrap().fewer_layers(), None);
    assert!(verdict.largest_context_tokens.unwrap() > 12_288);
}

#[test]
fn the_older_working_set_leaves_some_layers_on_the_cpu() {
    let model = accounts::qwen35_35b(11_391_613_568);
    let older = Machine::new(16 * GIB, Some(OLDER_16));
    let verdict = verdict(&model, (12_288, KvCache::Q4_0), &older, &[]);
    assert_eq!(verdict.placement, Placement::Resident);
    let gpu = verdict.gpu.unwrap();
    assert!((30..41).contains(&gpu.layers), "{gpu:?}");
    assert_eq!(gpu.limit_bytes, OLDER_16 - GIB / 2);
    assert!(gpu.bytes <= gpu.limit_bytes);
    let warning = verdict.warning.unwrap();
    assert!(
        warning.contains(&format!("{} of its 41 layers", gpu.layers)),
        "{warning}"
    );
}

#[test]
fn qwen_9b_q4_k_m_at_4096_tokens_runs_on_8_gb_with_a_warning() {
    let model = accounts::qwen35_9b(5_680_522_464);
    let verdict = verdict(&model, (4096, KvCache::F16), &Machine::mac(8 * GIB), &[]);
    assert_eq!(verdict.placement, Placement::Mmap);
    assert_eq!(verdict.total_bytes, 5 * GIB);
    let warning = verdict.warning.unwrap();
    assert!(warning.contains("close other apps"), "{warning}");
    // The same on 16 GB needs no warning.
    let roomy = super::verdict(&model, (4096, KvCache::F16), &Machine::mac(16 * GIB), &[]);
    assert_eq!(
        (roomy.placement, roomy.warning),
        (Placement::Resident, None)
    );
}

#[test]
fn qwen_35b_q4_k_m_pages_on_16_gb_and_iq2_m_is_suggested() {
    let model = accounts::qwen35_35b(22_016_023_168);
    let offers = accounts::qwen35_35b_offers();
    let verdict = verdict(
        &model,
        (12_288, KvCache::Q4_0),
        &Machine::mac(16 * GIB),
        &offers,
    );
    assert_eq!(verdict.placement, Placement::Advise);
    assert_eq!(verdict.total_bytes, verdict.budget_bytes);
    assert_eq!(
        line(&verdict, LineKind::PagedExperts) + line(&verdict, LineKind::ResidentExperts),
        model.expert_bytes
    );
    assert!(verdict.warning.unwrap().contains("are read from disk"));
    let instead = verdict.instead.unwrap();
    assert_eq!(instead.quant, "UD-IQ2_M");
    assert_eq!(instead.placement, Placement::Resident);
}

#[test]
fn a_too_large_dense_model_is_refused_with_a_context() {
    let model = accounts::qwen35_9b(9_527_502_048);
    let verdict = verdict(
        &model,
        (262_144, KvCache::F16),
        &Machine::mac(16 * GIB),
        &[],
    );
    assert_eq!(verdict.placement, Placement::Refused);
    assert_eq!((verdict.gpu, verdict.warning), (None, None));
    let largest = verdict.largest_context_tokens.unwrap();
    assert_eq!(
        super::verdict(
            &model,
            (largest, KvCache::F16),
            &Machine::mac(16 * GIB),
            &[]
        )
        .placement,
        Placement::Mmap
    );
    assert!(
        verdict
            .summary
            .starts_with("Does not fit this machine: with a context of 262144 tokens it needs "),
        "{}",
        verdict.summary
    );
    assert!(
        verdict
            .summary
            .ends_with(&format!("It fits with a context of {largest} tokens."))
    );
}

#[test]
fn a_projector_is_counted_or_left_out_with_a_warning() {
    let model = accounts::qwen35_35b(11_391_613_568);
    let of = |bytes: Option<u64>| {
        let machine = Machine::mac(16 * GIB);
        let projector = bytes.map(|bytes| Projector(bytes, 0));
        let beside = CompanionModels::projector(projector.as_ref());
        verdict_with(&model, beside, (12_288, KvCache::Q4_0), &machine, &[])
    };
    let (alone, small, large) = (of(None), of(Some(GIB / 4)), of(Some(GIB)));
    assert_eq!(line(&small, LineKind::Projector), GIB / 4);
    assert_eq!(small.total_bytes, alone.total_bytes + GIB / 4);
    assert!(small.largest_context_tokens < alone.largest_context_tokens);
    assert_eq!(
        (small.warning, small.placement),
        (None, Placement::Resident)
    );
    // As in a load, the model runs without what has no room.
    assert_eq!(large.total_bytes, alone.total_bytes);
    let warning = large.warning.unwrap();
    assert!(
        warning.starts_with("It accepts only text here: "),
        "{warning}"
    );
    assert!(warning.contains("projector of 1.0 GiB"), "{warning}");
}
