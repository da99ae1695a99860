//! Probabilities of tokens, before any sampler.

use super::Token;

/// A token with its logarithmic probability, before any sampler.
pub(crate) type LogProbability = (Token, f32);

/// Returns how many tokens are likelier than this one.
pub(crate) fn count_likelier_tokens(logits: &[f32], token: Token) -> usize {
    let own = usize::try_from(token).ok().and_then(|at| logits.get(at));
    own.map_or(0, |own| logits.iter().filter(|&logit| logit > own).count())
}

/// Of the token that was chosen, and of the `top` likeliest in falling order.
pub(crate) fn log_probabilities(
    logits: &[f32],
    chosen: Token,
    top: usize,
) -> (LogProbability, Vec<LogProbability>) {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits
        .iter()
        .map(|&logit| f64::from(logit - greatest).exp())
        .sum();
    let whole = greatest + sum.ln() as f32;
    let logit = |token: Token| {
        let at = usize::try_from(token).ok();
        let known = at.and_then(|at| logits.get(at));
        known.copied().unwrap_or(f32::NEG_INFINITY)
    };
    let of = |token: Token| (token, logit(token) - whole);
    // Few of a vocabulary's tokens are ever among the best so far, so that this costs one look at each.
    let mut best: Vec<(f32, Token)> = Vec::with_capacity(top + 1);
    let known = logits.iter().zip(0..).filter(|(logit, _)| !logit.is_nan());
    for (&logit, token) in known {
        let is_full = best.len() >= top;
        if is_full && best.last().is_none_or(|(least, _)| logit <= *least) {
            continue;
        }
        let at = best.partition_point(|(other, _)| *other >= logit);
        best.insert(at, (logit, token));
        best.truncate(top);
    }
    let best = best.into_iter().map(|(_, token)| of(token));
    (of(chosen), best.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_are_softmax_values_in_order() {
        let (chosen, top) = log_probabilities(&[0.0, 2.0, 1.0, 2.0], 2, 3);
        let whole = (1.0 + 2.0 * 2.0_f32.exp() + 1.0_f32.exp()).ln();
        assert!((chosen.1 - (1.0 - whole)).abs() < 1e-6);
        assert_eq!(top.iter().map(|one| one.0).collect::<Vec<_>>(), [1, 3, 2]);
        assert!((top[0].1 - (2.0 - whole)).abs() < 1e-6);
        assert_eq!(log_probabilities(&[1.0], 0, 5).1.len(), 1);
        assert!(log_probabilities(&[1.0, 2.0], 0, 0).1.is_empty());
        let (_, top) = log_probabilities(&[f32::NAN, 1.0, 5.0, 3.0, 4.0], 1, 2);
        assert_eq!([top[0].0, top[1].0], [2, 4]);
        assert_eq!(
            [0, 1, 2].map(|token| count_likelier_tokens(&[0.0, 2.0, 1.0, 2.0], token)),
            [3, 0, 2]
        );
    }
}
