//! What is in memory of a model at one moment, and how much each part of it was used lately.

use crate::layout::{ExpertIndex, Layout};

/// The digit of an expert whose frequency of use is unknown.
pub(crate) const UNKNOWN: u8 = 5;

/// The experts of a model, layer by layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResidencyPicture {
    /// A line for each layer, with a character for each of its experts: `.` if it is not in memory, otherwise a digit from
    /// `0`, not used lately, to `9`, used by nearly every token.
    pub layers: Vec<String>,
    /// Bytes of the experts in memory, and of all.
    pub held_bytes: u64,
    pub all_bytes: u64,
}

impl ResidencyPicture {
    /// `heat` returns the digit of an expert; `None` if it is not in memory.
    pub(crate) fn new(layout: &Layout, heat: impl Fn(ExpertIndex) -> Option<u8>) -> Self {
        let mut held = 0;
        let layers = layout
            .layers()
            .map(|units| {
                let letters = units.map(|unit| {
                    let digit = heat(unit).and_then(|heat| char::from_digit(heat.into(), 10))?;
                    held += layout.pages[unit as usize];
                    Some(digit)
                });
                letters.map(|digit| digit.unwrap_or('.')).collect()
            })
            .collect();
        Self {
            layers,
            held_bytes: held * layout.page,
            all_bytes: layout.expert_bytes(),
        }
    }
}

/// Returns how much an expert was used lately, from 0 to 9, on the scale of the logarithm: from less than one use, to more than
/// half of all tokens. The weight is the base-2 logarithm of a sum over its uses, in which one at token t counts 2^(t / half-life).
pub(crate) fn heat(weight: f64, token: u64, half_life_tokens: f64) -> u8 {
    let uses = (weight - half_lives(token, half_life_tokens)).exp2();
    // What a use by every token since the beginning of time adds up to.
    let most = 1.0 / (1.0 - (-1.0 / half_life_tokens).exp2());
    let part = uses.ln_1p() / most.ln_1p();
    (1..=9)
        .take_while(|digit| part * 10.0 >= f64::from(*digit))
        .last()
        .unwrap_or(0)
}

/// Returns how many half-lives have passed up to a token.
pub(crate) fn half_lives(token: u64, half_life_tokens: f64) -> f64 {
    token as f64 / half_life_tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cache::{Cache, EvictionPolicy},
        layout::{Tensor, TensorKind},
    };

    const HALF_LIFE: f64 = 64.0;

    /// The heat after 1,000 tokens of an expert that every so many of them used.
    fn heat_of_one_in(every: u64) -> u8 {
        let policy = EvictionPolicy::LeastFrequent {
            half_life_tokens: HALF_LIFE,
        };
        let mut cache = Cache::new(vec![1], 1, policy);
        for token in (0..=1000).filter(|token| token % every == 0) {
            for unit in cache.take(&[0], token).missing {
                cache.loaded(unit);
            }
        }
        cache.heat(0, 1000).unwrap()
    }

    #[test]
    fn experts_are_the_hotter_the_more_tokens_use_them() {
        let heats = [1, 2, 4, 8, 16, 32, 500].map(heat_of_one_in);
        assert_eq!(heats, [9, 8, 7, 5, 4, 3, 1]);
    }

    #[test]
    fn an_expert_cools_down_when_it_is_not_used() {
        let after = |tokens| heat(0.0, tokens, HALF_LIFE);
        assert_eq!([0, 64, 10_000].map(after), [1, 0, 0]);
        // It was read ahead and never used.
        assert_eq!(heat(f64::NEG_INFINITY, 3, HALF_LIFE), 0);
        // A weight that no cache has.
        assert_eq!(heat(f64::INFINITY, 3, HALF_LIFE), 9);
    }

    #[test]
    fn a_picture_has_a_line_for_each_layer_and_counts_bytes() {
        let page = 4096;
        let tensor = |layer, experts: u32, offset| Tensor {
            file: 0,
            offset,
            bytes: u64::from(experts) * 2 * page,
            kind: TensorKind::Experts { layer, experts },
        };
        // The first layer is dense, and so has no line.
        let tensors = [tensor(1, 3, 0), tensor(2, 2, 6 * page)];
        let layout = Layout::new(&tensors, page).unwrap();
        let heat = |unit| [Some(0), None, Some(9), None, Some(UNKNOWN)][unit as usize];
        assert_eq!(
            ResidencyPicture::new(&layout, heat),
            ResidencyPicture {
                layers: vec!["0.9".to_owned(), ".5".to_owned()],
                held_bytes: 6 * page,
                all_bytes: 10 * page,
            }
        );
    }
}
