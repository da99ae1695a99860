//! Experts that are in memory in place of the router's choice: faster, and no longer the model's own answer. Pure.
//!
//! The first of a choice is never replaced. A missing one gives way to the next in the router's order that is in memory, if that
//! is not too far down; the router's own probabilities weigh it (cache-conditional experts: Skliar et al.,
//! arXiv:2412.00099). Or it is left out, if it weighs little.

use tierbar_core::run::Approximation;

/// A token's choice after the change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApproximatedChoice {
    pub(super) experts: Vec<u32>,
    /// Places in `experts` that must not count.
    pub(super) dropped: Vec<usize>,
    /// Experts that were replaced or left out.
    pub(super) changed: u64,
    /// The part of the choice's weight that was lost, from 0 to 1.
    pub(super) lost: f64,
}

/// Changes a choice: the first `used` of the router's `order` of all experts, whose `weights` are by expert.
pub(super) fn approximate_choice(
    how: Approximation,
    order: &[u32],
    used: usize,
    weights: &[f32],
    is_held: &dyn Fn(u32) -> bool,
) -> ApproximatedChoice {
    let chosen = &order[..used.min(order.len())];
    let number = |expert: u32| weights.get(expert as usize).copied().unwrap_or(0.0);
    // Some routers weigh by the exponentials of these.
    let are_logits = chosen.iter().any(|expert| number(*expert) < 0.0);
    let most = chosen.first().map_or(0.0, |expert| number(*expert));
    let weight = |expert: u32| {
        let number = number(expert);
        f64::from(if are_logits {
            (number - most).exp()
        } else {
            number
        })
    };
    let all: f64 = chosen.iter().map(|expert| weight(*expert)).sum();
    let part = |expert: u32| {
        if all > 0.0 { weight(expert) / all } else { 0.0 }
    };
    let mut choice = ApproximatedChoice {
        experts: chosen.to_vec(),
        dropped: Vec::new(),
        changed: 0,
        lost: 0.0,
    };
    let kept = used.div_ceil(2);
    // Twice as many as are used.
    let further = order.iter().take(2 * used).skip(used);
    // Those of other groups than the router's have none.
    let mut held = further.copied().filter(|expert| {
        let is_possible = number(*expert).is_finite();
        is_possible && is_held(*expert)
    });
    for place in kept..chosen.len() {
        let missing = chosen[place];
        if is_held(missing) {
            continue;
        }
        let lost = match how {
            Approximation::Off => continue,
            Approximation::Substitute => {
                let Some(instead) = held.next() else { continue };
                choice.experts[place] = instead;
                part(missing) - part(instead)
            }
            Approximation::Drop if part(missing) < LIGHT => {
                // Another that is there anyway: nothing further is read.
                choice.experts[place] = chosen[0];
                choice.dropped.push(place);
                part(missing)
            }
            Approximation::Drop => continue,
        };
        choice.changed += 1;
        choice.lost += lost;
    }
    choice
}

/// What is left out at most, as a part of the choice's weight.
const LIGHT: f64 = 0.1;

/// Sets the weights of dropped places to zero, and scales the others so that their sum stays.
pub(super) fn renormalize(weights: &mut [f32], dropped: &[usize]) {
    let sum = |weights: &[f32]| weights.iter().sum::<f32>();
    let before = sum(weights);
    for &place in dropped {
        if let Some(weight) = weights.get_mut(place) {
            *weight = 0.0;
        }
    }
    let after = sum(weights);
    if after > 0.0 {
        for weight in weights {
            *weight *= before / after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: [u32; 6] = [5, 2, 0, 4, 1, 3];
    const WEIGHTS: [f32; 6] = [0.2, 0.1, 0.25, 0.02, 0.03, 0.4];

    fn changed(how: Approximation, held: &[u32]) -> ApproximatedChoice {
        approximate_choice(how, &ORDER, 4, &WEIGHTS, &|expert| held.contains(&expert))
    }

    #[test]
    fn nothing_changes_while_all_chosen_experts_are_held() {
        for how in [Approximation::Substitute, Approximation::Drop] {
            let choice = changed(how, &[0, 2, 4, 5]);
            assert_eq!((choice.changed, choice.experts), (0, vec![5, 2, 0, 4]));
        }
    }

    #[test]
    fn a_missing_expert_gives_way_to_the_next_that_is_held() {
        let choice = changed(Approximation::Substitute, &[0, 3]);
        // The first two stay, missing or not; of the rest 4 is missing, and 1 is.
        assert_eq!(choice.experts, [5, 2, 0, 3]);
        assert_eq!(choice.changed, 1);
        assert!((choice.lost - (0.03 - 0.02) / 0.88).abs() < 1e-6);
        let none = changed(Approximation::Substitute, &[]);
        assert_eq!((none.changed, none.experts), (0, vec![5, 2, 0, 4]));
        let both = changed(Approximation::Substitute, &[1, 3]);
        assert_eq!(both.experts, [5, 2, 1, 3]);
    }

    #[test]
    fn logits_are_weighed_by_their_exponentials() {
        let logits = [-1.0, -2.0, 0.5, f32::NEG_INFINITY, -4.0, 1.0];
        let held = |expert| expert == 4 || expert == 3;
        let order = [5, 2, 0, 1, 4, 3];
        let choice = approximate_choice(Approximation::Substitute, &order, 4, &logits, &held);
        assert_eq!(choice.experts, [5, 2, 4, 1]);
        assert!((0.0..0.1).contains(&choice.lost), "{choice:?}");
    }

    #[test]
    fn only_a_light_missing_expert_is_dropped() {
        let choice = changed(Approximation::Drop, &[]);
        // 0 weighs 0.2 of 0.88.
        assert_eq!(
            (choice.experts, choice.dropped),
            (vec![5, 2, 0, 5], vec![3])
        );
        assert!((choice.lost - 0.03 / 0.88).abs() < 1e-6);
    }

    #[test]
    fn the_weights_of_what_stays_add_up_to_the_same() {
        let mut weights = [0.4, 0.25, 0.2, 0.15];
        renormalize(&mut weights, &[3]);
        assert!(
            (weights.iter().sum::<f32>() - 1.0).abs() < 1e-6,
            "{weights:?}"
        );
        assert!(weights[3] == 0.0 && (weights[0] / weights[1] - 1.6).abs() < 1e-5);
    }
}
