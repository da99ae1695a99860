use crate::{
    TierId, TierState,
    routing::{Level, Need, Seat, Traits, choose},
};
use TierState::{Busy, Failed, Ready, Stopped};

fn seat(tier: &str, state: TierState) -> Seat {
    Seat {
        tier: TierId::new(tier).unwrap(),
        state,
        elsewhere: false,
        context_tokens: 4096,
        sees: None,
        calls: None,
        tokens_per_second: None,
        load_seconds: None,
        under_way: 0,
    }
}

fn three(fast: TierState, primary: TierState, heavy: TierState) -> [Seat; 3] {
    [
        seat("fast", fast),
        seat("primary", primary),
        seat("heavy", heavy),
    ]
}

fn need(level: Level) -> Need {
    Need { level, sure: true }
}

fn chosen(need: Need, seats: &[Seat]) -> String {
    of(&Traits::default(), need, seats)
}

fn of(traits: &Traits, need: Need, seats: &[Seat]) -> String {
    let choice = choose(traits, need, seats, true).unwrap();
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
    let mut seats = three(Busy, Ready, Stopped);
    let traits = Traits {
        answer_tokens: 100,
        ..Traits::default()
    };
    assert_eq!(of(&traits, need(Level::Simple), &seats), "fast");
    seats[0].under_way = 3;
    assert_eq!(of(&traits, need(Level::Simple), &seats), "primary");
    seats[1].tokens_per_second = Some(2.0);
    assert_eq!(of(&traits, need(Level::Simple), &seats), "fast");
}

#[test]
fn a_larger_tier_is_loaded_where_that_is_worth_it() {
    let mut seats = three(Ready, Stopped, Stopped);
    assert_eq!(chosen(need(Level::Medium), &seats), "primary");
    assert_eq!(chosen(need(Level::Hard), &seats), "heavy");
    seats[1].load_seconds = Some(21.0);
    assert_eq!(chosen(need(Level::Medium), &seats), "fast");
    seats[2].load_seconds = Some(119.0);
    assert_eq!(chosen(need(Level::Hard), &seats), "heavy");
    seats[2].load_seconds = Some(121.0);
    assert_eq!(chosen(need(Level::Hard), &seats), "fast");

    let guess = Need {
        level: Level::Hard,
        sure: false,
    };
    seats[2].load_seconds = None;
    assert_eq!(chosen(guess, &seats), "fast");
    let short = choose(&Traits::default(), need(Level::Hard), &seats, false).unwrap();
    assert_eq!(short.tier.as_str(), "fast");
    assert_eq!(short.why, "fast is loaded, and memory is short");
}

#[test]
fn tiers_without_the_context_or_vision_are_skipped() {
    let mut seats = three(Ready, Stopped, Stopped);
    seats[2].context_tokens = 16384;
    let long = Traits {
        prompt_tokens: 4000,
        answer_tokens: 512,
        ..Traits::default()
    };
    assert_eq!(of(&long, need(Level::Simple), &seats), "heavy");
    let longer = Traits {
        prompt_tokens: 40_000,
        ..long
    };
    assert_eq!(of(&longer, need(Level::Simple), &seats), "heavy");

    let image = Traits {
        media: true,
        ..Traits::default()
    };
    assert_eq!(
        of(&image, need(Level::Simple), &seats),
        "fast",
        "it may see"
    );
    seats[0].sees = Some(false);
    assert_eq!(of(&image, need(Level::Simple), &seats), "primary");
    seats[2].sees = Some(true);
    assert_eq!(of(&image, need(Level::Simple), &seats), "heavy");

    let mut seats = three(Ready, Stopped, Stopped);
    let tools = Traits {
        tools: true,
        ..Traits::default()
    };
    assert_eq!(of(&tools, need(Level::Simple), &seats), "fast");
    seats[0].calls = Some(false);
    assert_eq!(of(&tools, need(Level::Simple), &seats), "primary");
    for seat in &mut seats {
        seat.calls = Some(false);
    }
    assert_eq!(of(&tools, need(Level::Simple), &seats), "fast", "none does");
}

#[test]
fn a_remote_tier_is_used_only_without_a_local_one() {
    let mut seats = three(Ready, Ready, Failed);
    seats[0].elsewhere = true;
    seats[1].elsewhere = true;
    assert_eq!(chosen(need(Level::Simple), &seats), "heavy");
    assert_eq!(chosen(need(Level::Simple), &seats[..2]), "fast");
}

#[test]
fn custom_tiers_answer_only_without_the_standard_three() {
    let seats = [seat("fast", Stopped), seat("embedder", Ready)];
    assert_eq!(chosen(need(Level::Medium), &seats), "fast");
    assert_eq!(chosen(need(Level::Medium), &seats[1..]), "embedder");
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
