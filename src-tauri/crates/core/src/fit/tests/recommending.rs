use super::*;

fn recommended(ram: u64) -> Option<String> {
    let model = accounts::qwen35_35b(11_391_613_568);
    let offers = accounts::qwen35_35b_offers();
    let machine = Machine::mac(ram * GIB);
    recommend(
        &model,
        CompanionModels::default(),
        (12_288, KvCache::Q4_0),
        &machine,
        &offers,
    )
    .map(|instead| instead.quant)
}

#[test]
fn the_largest_quant_of_daily_use_that_fits_is_recommended() {
    assert_eq!(recommended(16).as_deref(), Some("UD-IQ2_M"));
    assert_eq!(recommended(24).as_deref(), Some("UD-IQ4_XS"));
    // Of twice the bytes, Q8_0 is half as fast.
    assert_eq!(recommended(48).as_deref(), Some("Q4_K_M"));
}

#[test]
fn otherwise_the_one_with_least_on_disk_is_recommended() {
    assert_eq!(recommended(8).as_deref(), Some("UD-IQ2_XXS"));
}

#[test]
fn a_paged_profile_takes_four_bits_beyond_memory() {
    let model = accounts::qwen35_35b(11_391_613_568);
    let offers = accounts::qwen35_35b_offers();
    let paged = ContextChoice {
        profile: crate::run::Profile::Paged,
        ..ContextChoice::default()
    };
    let found = recommend(
        &model,
        CompanionModels::default(),
        paged,
        &Machine::mac(16 * GIB),
        &offers,
    )
    .unwrap();
    assert_eq!(found.quant, "Q4_K_M");
    assert!(found.placement.is_paged() && found.reason.contains("disk"));
    let dense = accounts::qwen35_9b(5_680_522_464);
    let offers = [offer("Q4_K_M", 5_680_522_464), offer("Q8_0", 9_527_502_048)];
    let found = recommend(
        &dense,
        CompanionModels::default(),
        paged,
        &Machine::mac(16 * GIB),
        &offers,
    )
    .unwrap();
    assert_eq!(
        (found.quant.as_str(), found.placement),
        ("Q4_K_M", Placement::Resident)
    );
}

#[test]
fn a_small_models_quant_is_known_by_its_name() {
    // Of SmolLM2 135M, Q4_K_M has 6.3 bits per weight, since a fifth of it are embeddings.
    let model = accounts::smollm2_135m();
    let offers = [
        offer("Q2_K", 88_200_000),
        offer("Q4_K_M", 105_454_432),
        offer("Q5_K_M", 112_100_000),
    ];
    let machine = Machine::mac(16 * GIB);
    let found = recommend(
        &model,
        CompanionModels::default(),
        ContextChoice::default(),
        &machine,
        &offers,
    )
    .unwrap();
    assert_eq!(found.quant, "Q4_K_M");
    assert!(found.reason.contains("2.4 % above"), "{}", found.reason);
    let grounds = found.grounds.unwrap();
    assert_eq!(grounds.basis, Basis::Balanced);
    assert_eq!(grounds.measured.as_deref(), Some("Q4_K_M"));
    let unnamed = [offer("model", 100_000_000), offer("full", 271_000_000)];
    let found = recommend(
        &model,
        CompanionModels::default(),
        ContextChoice::default(),
        &machine,
        &unnamed,
    )
    .unwrap();
    assert_eq!(found.quant, "model");
}

#[test]
fn a_quant_of_four_bits_that_leaves_room_for_media_comes_first() {
    let model = accounts::qwen35_9b(5_680_522_464);
    let four = [
        offer("Q4_K_S", 5_200_000_000),
        offer("Q4_K_M", 5_680_522_464),
    ];
    let machine = Machine::new(12 * GIB, None);
    let of = |projector: &Projector, offers: &[Offer]| {
        let beside = CompanionModels::projector(Some(projector));
        let found = recommend(&model, beside, (4096, KvCache::F16), &machine, offers);
        found.unwrap().quant
    };
    let room = machine.budget().total_bytes
        - crate::budget::needs(&model, 4096, KvCache::F16, MICRO_BATCH).total_bytes();
    assert_eq!(of(&Projector(room, 0), &four), "Q4_K_M");
    assert_eq!(of(&Projector(room + 1, 0), &four), "Q4_K_S");
    assert_eq!(of(&Projector(8 * GIB, 0), &four), "Q4_K_M");
    // Not below: fewer bits cost more than images are worth.
    let three = [offer("Q3_K_M", 4_400_000_000), four[1].clone()];
    assert_eq!(of(&Projector(room + 1, 0), &three), "Q4_K_M");
}

#[test]
fn nothing_is_recommended_where_nothing_runs() {
    let model = accounts::qwen35_9b(5_680_522_464);
    let offers = [offer("Q4_K_M", 5_680_522_464)];
    let machine = Machine::mac(4 * GIB);
    assert_eq!(
        recommend(
            &model,
            CompanionModels::default(),
            (4096, KvCache::F16),
            &machine,
            &offers
        ),
        None
    );
}

#[test]
fn sixteen_bits_are_recommended_only_as_a_last_resort() {
    let model = accounts::smollm2_135m();
    let machine = Machine::mac(64 * GIB);
    let quant = |offers: &[Offer]| {
        recommend(
            &model,
            CompanionModels::default(),
            (4096, KvCache::F16),
            &machine,
            offers,
        )
        .map(|instead| instead.quant)
    };
    let (fine, coarse) = (offer("F16", 271_000_000), offer("Q8_0", 144_800_000));
    assert_eq!(quant(&[fine.clone(), coarse]).as_deref(), Some("Q8_0"));
    assert_eq!(quant(&[fine]).as_deref(), Some("F16"));
}

#[test]
fn a_resident_model_has_no_alternative() {
    let model = accounts::qwen35_35b(11_391_613_568);
    let offers = accounts::qwen35_35b_offers();
    let verdict = verdict(
        &model,
        (4096, KvCache::Q4_0),
        &Machine::mac(64 * GIB),
        &offers,
    );
    assert_eq!(verdict.instead, None);
}

fn offer(quant: &str, size_bytes: u64) -> Offer {
    accounts::offer(quant, size_bytes)
}
