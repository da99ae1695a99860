use super::*;

fn steps(count: f64) -> Duration {
    Duration::from_secs_f64(count)
}

/// Answers with so many tokens on a machine where each token of a draft adds `each` steps to an evaluation. `text` is, for each
/// token, whether earlier text predicts it correctly, or `None` where nothing matches. Returns how many times as fast it is as
/// without drafts.
fn answer(
    policy: &mut DraftingPolicy,
    tokens: usize,
    each: f64,
    text: impl Fn(usize) -> Option<bool>,
) -> f64 {
    let mut answer = AnswerDrafts::default();
    let (mut at, mut took, mut run) = (0, 0.0, 0);
    while at < tokens {
        let matched = 3 + run;
        let most = (tokens - at - 1).min(7);
        let length = match text(at) {
            Some(_) if answer.is_measured() => policy.lookup_length(&answer, matched, most),
            _ => 0,
        };
        let right = (0..length.max(1))
            .take_while(|place| text(at + place) == Some(true))
            .count();
        if text(at).is_some() {
            answer.note_match(matched, right, right < length.max(1));
        }
        let given = if length == 0 { 1 } else { right + 1 };
        let step = DraftedStep {
            source: match length {
                0 => DraftSource::None,
                _ => DraftSource::Lookup,
            },
            drafted: length,
            given,
            took: steps(each.mul_add(length as f64, 1.0)),
        };
        policy.note_step(&mut answer, step);
        took += step.took.as_secs_f64();
        let goes_on = text(at + given - 1) == Some(true);
        run = if goes_on { run + given } else { 0 };
        at += given;
    }
    at as f64 / took
}

fn prose(at: usize) -> Option<bool> {
    at.is_multiple_of(10).then_some(at.is_multiple_of(40))
}

fn code(at: usize) -> Option<bool> {
    match at % 12 {
        0..8 => Some(true),
        8 => Some(false),
        _ => None,
    }
}

fn quote(at: usize) -> Option<bool> {
    (at % 64 < 60).then_some(true)
}

#[test]
fn copied_text_gains_where_rows_are_cheap() {
    for (each, least_code, least_quote) in [(0.05, 2.0, 4.0), (0.15, 1.7, 3.0), (0.5, 1.25, 1.6)] {
        let mut policy = DraftingPolicy::default();
        for _ in 0..4 {
            let coded = answer(&mut policy, 256, each, code);
            assert!(coded > least_code, "{each}: {coded}");
            let quoted = answer(&mut policy, 256, each, quote);
            assert!(quoted > least_quote, "{each}: {quoted}");
        }
    }
}

#[test]
fn no_text_loses_on_any_machine() {
    let texts: [fn(usize) -> Option<bool>; 5] = [prose, code, quote, |_| Some(false), |_| None];
    for each in [0.05, 0.1, 0.15, 0.25, 0.5, 0.8, 1.0, 1.5] {
        let mut policy = DraftingPolicy::default();
        for _ in 0..8 {
            for text in texts {
                let speed = answer(&mut policy, 256, each, text);
                assert!(speed > 0.98, "{each}: {speed}");
            }
        }
    }
}

#[test]
fn random_text_loses_at_most_the_budget() {
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for each in [0.05, 0.15, 0.5, 1.0] {
        let mut policy = DraftingPolicy::default();
        for _ in 0..200 {
            let (dense, right) = (random(100), random(100));
            let text: Vec<_> = (0..300)
                .map(|_| (random(100) < dense).then(|| random(100) < right))
                .collect();
            let speed = answer(&mut policy, 256, each, |at| text[at]);
            assert!(speed > 0.97, "{each}, {dense} %, {right} %: {speed}");
        }
    }
}

#[test]
fn a_busy_machine_is_measured_anew() {
    let mut policy = DraftingPolicy::default();
    let busy = answer(&mut policy, 256, 2.0, quote);
    assert!(busy > 0.98, "{busy}");
    let quiet = |policy: &mut DraftingPolicy| answer(policy, 256, 0.1, quote);
    let speeds: Vec<_> = (0..8).map(|_| quiet(&mut policy)).collect();
    assert!(speeds[0] < 1.1 && speeds[7] > 3.0, "{speeds:?}");
}

/// Takes steps of one token each, or as the draft model gives, and returns how many steps it lost.
fn with_model(
    policy: &mut DraftingPolicy,
    answer: &mut AnswerDrafts,
    tokens: usize,
    (given, took): (usize, f64),
) -> f64 {
    let (mut at, mut lost) = (0, 0.0);
    while at < tokens {
        let drafts = answer.is_measured() && policy.drafts_by_model(0);
        let step = DraftedStep {
            source: if drafts {
                DraftSource::Model
            } else {
                DraftSource::None
            },
            drafted: if drafts { 4 } else { 0 },
            given: if drafts { given } else { 1 },
            took: steps(if drafts { took } else { 1.0 }),
        };
        policy.note_step(answer, step);
        lost += step.took.as_secs_f64() - step.given as f64;
        at += step.given;
    }
    lost
}

#[test]
fn a_draft_model_that_loses_is_seldom_tried() {
    let (mut policy, mut answer) = (DraftingPolicy::default(), AnswerDrafts::default());
    let lost = with_model(&mut policy, &mut answer, 1000, (1, 3.0));
    assert!((lost - 2.0 * f64::from(TRIAL)).abs() < 1e-6, "{lost}");
    let later = with_model(&mut policy, &mut answer, 10_000, (1, 3.0));
    assert!(later > 0.0 && later < 100.0, "{later}");
}

#[test]
fn a_draft_model_that_pays_goes_on_until_it_loses() {
    let (mut policy, mut answer) = (DraftingPolicy::default(), AnswerDrafts::default());
    let saved = -with_model(&mut policy, &mut answer, 1000, (4, 2.5));
    assert!(saved > 300.0, "{saved}");
    assert_eq!(answer.accepted * 4, answer.drafted * 3);
    let lost = with_model(&mut policy, &mut answer, 1000, (1, 3.0));
    assert!(lost > 0.0 && lost < 60.0, "{lost}");
}

#[test]
fn a_draft_model_prefills_only_what_its_budget_covers() {
    let (mut policy, mut answer) = (DraftingPolicy::default(), AnswerDrafts::default());
    // Only a part of a long prompt measures the prefill.
    assert!(policy.drafts_by_model(10_000));
    assert_eq!(policy.most_prefill(), MEASURED_PREFILL);
    for source in [DraftSource::None, DraftSource::ModelPrefill(100)] {
        let step = DraftedStep {
            source,
            drafted: 0,
            given: 1,
            took: steps(match source {
                DraftSource::None => 1.0,
                _ => 11.0,
            }),
        };
        policy.note_step(&mut answer, step);
    }
    assert!(!policy.drafts_by_model(100));
    assert!(policy.drafts_by_model(10));
    assert!(answer.saved_seconds < -9.0);
}

#[test]
fn comparing_logits_takes_nothing_of_a_budget() {
    let (mut policy, mut answer) = (DraftingPolicy::default(), AnswerDrafts::default());
    let before = (policy.lookup.steps, policy.model.steps);
    for (source, took) in [(DraftSource::None, 1.0), (DraftSource::Check, 2.5)] {
        let step = DraftedStep {
            source,
            drafted: 0,
            given: 1,
            took: steps(took),
        };
        policy.note_step(&mut answer, step);
    }
    assert!(policy.lookup.steps >= before.0 && policy.model.steps >= before.1);
    assert!(answer.saved_seconds < -steps(1.0).as_secs_f64());
}
