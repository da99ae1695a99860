use crate::{Candidate, Level, Need, Traits, choose};
use TierState::{Busy, Failed, Ready, Stopped};
use tierbar_core::{TierId, TierState};

fn candidate(tier: &str, state: TierState) -> Candidate {
    Candidate {
        tier: TierId::new(tier).unwrap(),
        state,
        elsewhere: false,
        context_tokens: 4096,
        takes_media: None,
        calls: None,
        tokens_per_second: None,
        load_seconds: None,
        under_way: 0,
    }
}

fn three(fast: TierState, primary: TierState, heavy: TierState) -> [Candidate; 3] {
    [
        candidate("fast", fast),
        candidate("primary", primary),
        candidate("heavy", heavy),
    ]
}

fn need(level: Level) -> Need {
    Need { level, sure: true }
}

fn chosen(need: Need, candidates: &[Candidate]) -> String {
    of(&Traits::default(), need, candidates)
}

fn of(traits: &Traits, need: Need, candidates: &[Candidate]) -> String {
    let choice = choose(traits, need, candidates, true).unwrap();
    assert!(choice.why.is_ascii());
    choice.tier.to_string()
}

#[test]
fn with_nothing_loaded_the_smallest_capable_tier_answers() {
    let cold = three(Stopped, Stopped, Stopped);
    for level in Level::ALL {
        assert_eq!(chosen(need(level), &cold), level.tier());
    }
    assert_eq!(
        chosen(need(Level::Medium), &[cold[0].clone(), cold[2].clone()]),
        "heavy"
    );
    assert_eq!(chosen(need(Level::Hard), &cold[..2]), "primary");
    assert_eq!(
        choose(&Traits::default(), need(Level::Hard), &[], true),
        None
    );
}

#[test]
fn a_loaded_tier_that_is_large_enough_beats_a_load() {
    for level in Level::ALL {
        assert_eq!(chosen(need(level), &three(Stopped, Stopped, Busy)), "heavy");
    }
    assert_eq!(
        chosen(need(Level::Simple), &three(Ready, Stopped, Ready)),
        "fast"
    );
}

#[test]
fn of_two_loaded_tiers_the_faster_answers() {
    let mut candidates = three(Busy, Ready, Stopped);
    let traits = Traits {
        answer_tokens: 100,
        ..Traits::default()
    };
    assert_eq!(of(&traits, need(Level::Simple), &candidates), "fast");
    candidates[0].under_way = 3;
    assert_eq!(of(&traits, need(Level::Simple), &candidates), "primary");
    candidates[1].tokens_per_second = Some(2.0);
    assert_eq!(of(&traits, need(Level::Simple), &candidates), "fast");
}

#[test]
fn a_larger_tier_is_loaded_where_that_is_worth_it() {
    let mut candidates = three(Ready, Stopped, Stopped);
    assert_eq!(chosen(need(Level::Medium), &candidates), "primary");
    assert_eq!(chosen(need(Level::Hard), &candidates), "heavy");
    candidates[1].load_seconds = Some(21.0);
    assert_eq!(chosen(need(Level::Medium), &candidates), "fast");
    candidates[2].load_seconds = Some(119.0);
    assert_eq!(chosen(need(Level::Hard), &candidates), "heavy");
    candidates[2].load_seconds = Some(121.0);
    assert_eq!(chosen(need(Level::Hard), &candidates), "fast");

    let guess = Need {
        level: Level::Hard,
        sure: false,
    };
    candidates[2].load_seconds = None;
    assert_eq!(chosen(guess, &candidates), "fast");
    let short = choose(&Traits::default(), need(Level::Hard), &candidates, false).unwrap();
    assert_eq!(short.tier.as_str(), "fast");
    assert_eq!(short.why, "fast is loaded, and memory is low");
}

#[test]
fn tiers_without_the_context_or_vision_are_skipped() {
    let mut candidates = three(Ready, Stopped, Stopped);
    candidates[2].context_tokens = 16384;
    let long = Traits {
        prompt_tokens: 4000,
        answer_tokens: 512,
        ..Traits::default()
    };
    assert_eq!(of(&long, need(Level::Simple), &candidates), "heavy");
    let longer = Traits {
        prompt_tokens: 40_000,
        ..long
    };
    assert_eq!(of(&longer, need(Level::Simple), &candidates), "heavy");

    let image = Traits {
        images: true,
        ..Traits::default()
    };
    assert_eq!(
        of(&image, need(Level::Simple), &candidates),
        "fast",
        "it may see"
    );
    candidates[0].takes_media = Some(false);
    assert_eq!(of(&image, need(Level::Simple), &candidates), "primary");
    candidates[2].takes_media = Some(true);
    assert_eq!(of(&image, need(Level::Simple), &candidates), "heavy");

    let mut candidates = three(Ready, Stopped, Stopped);
    let tools = Traits {
        tools: true,
        ..Traits::default()
    };
    assert_eq!(of(&tools, need(Level::Simple), &candidates), "fast");
    candidates[0].calls = Some(false);
    assert_eq!(of(&tools, need(Level::Simple), &candidates), "primary");
    for candidate in &mut candidates {
        candidate.calls = Some(false);
    }
    assert_eq!(
        of(&tools, need(Level::Simple), &candidates),
        "fast",
        "none does"
    );
}

#[test]
fn a_remote_tier_is_used_only_without_a_local_one() {
    let mut candidates = three(Ready, Ready, Failed);
    candidates[0].elsewhere = true;
    candidates[1].elsewhere = true;
    assert_eq!(chosen(need(Level::Simple), &candidates), "heavy");
    assert_eq!(chosen(need(Level::Simple), &candidates[..2]), "fast");
}

#[test]
fn custom_tiers_answer_only_without_the_standard_three() {
    let candidates = [candidate("fast", Stopped), candidate("embedder", Ready)];
    assert_eq!(chosen(need(Level::Medium), &candidates), "fast");
    assert_eq!(chosen(need(Level::Medium), &candidates[1..]), "embedder");
}

#[test]
fn a_tier_that_has_failed_comes_last() {
    assert_eq!(
        chosen(need(Level::Hard), &three(Stopped, Stopped, Failed)),
        "primary"
    );
    assert_eq!(
        chosen(need(Level::Hard), &three(Failed, Failed, Failed)),
        "heavy"
    );
}
