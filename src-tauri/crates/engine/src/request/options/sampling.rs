//! How tokens are chosen, where the request says so.

use super::Options;
use crate::{
    bad,
    llama::{Dry, Mirostat, Sampling, Token},
};
use tierbar_core::{Error, sampling::Sampling as OwnSampling};

/// Tokens that a penalty looks at that is to look at all.
pub(in crate::request) const FAR_BACK: i32 = 1 << 16;

const MOST_BREAKERS: usize = 64;

const LONGEST_BREAKER: usize = 64;

impl Options {
    /// `own`: the model's, where the request does not say.
    ///
    /// # Errors
    /// `BadRequest` for a value out of range.
    pub(crate) fn sampling(&self, vocabulary: usize, own: OwnSampling) -> Result<Sampling, Error> {
        let base = Sampling::default();
        let warmth = self.temperature.or(own.temperature);
        let is_greedy = warmth.is_some_and(|warmth| warmth <= 0.0);
        // A model's penalties keep sampled text from repeating itself, and would only distort the likeliest one.
        let penalty = |sent: Option<f32>, own: Option<f32>, default: f32| {
            sent.or(own.filter(|_| !is_greedy)).unwrap_or(default)
        };
        let repetition = self.repeat_penalty.or(self.repetition_penalty);
        let sampling = Sampling {
            temperature: warmth.unwrap_or(base.temperature),
            top_k: self.top_k.or(own.top_k).unwrap_or(base.top_k),
            top_p: self.top_p.or(own.top_p).unwrap_or(base.top_p),
            min_p: self.min_p.or(own.min_p).unwrap_or(base.min_p),
            typical_p: self.typical_p.unwrap_or(base.typical_p),
            top_n_sigma: self.top_n_sigma.unwrap_or(base.top_n_sigma),
            xtc_probability: self.xtc_probability.unwrap_or(base.xtc_probability),
            xtc_threshold: self.xtc_threshold.unwrap_or(base.xtc_threshold),
            dynatemp_range: self.dynatemp_range.unwrap_or(base.dynatemp_range),
            dynatemp_exponent: self.dynatemp_exponent.unwrap_or(base.dynatemp_exponent),
            repeat_penalty: penalty(repetition, own.repeat_penalty, base.repeat_penalty),
            repeat_last_n: match self.repeat_last_n {
                // Ollama's and llama-server's word for the whole context.
                Some(-1) => FAR_BACK,
                Some(tokens) => tokens,
                // vLLM's penalty is for the whole text.
                None if self.repeat_penalty.is_none() && repetition.is_some() => FAR_BACK,
                None => base.repeat_last_n,
            },
            frequency_penalty: penalty(
                self.frequency_penalty,
                own.frequency_penalty,
                base.frequency_penalty,
            ),
            presence_penalty: penalty(
                self.presence_penalty,
                own.presence_penalty,
                base.presence_penalty,
            ),
            dry: self.dry()?,
            mirostat: Mirostat {
                version: self.mirostat.unwrap_or(base.mirostat.version),
                tau: self.mirostat_tau.unwrap_or(base.mirostat.tau),
                eta: self.mirostat_eta.unwrap_or(base.mirostat.eta),
            },
            // OpenAI's seeds are any integers; the sampler's are 32 bits wide.
            seed: self
                .seed
                .filter(|&seed| seed >= 0)
                .map_or(base.seed, |seed| (seed & 0xffff_ffff) as u32),
            logit_bias: self.biases(vocabulary)?,
        };
        let finite = [
            ("temperature", sampling.temperature),
            ("top_p", sampling.top_p),
            ("min_p", sampling.min_p),
            ("typical_p", sampling.typical_p),
            ("frequency_penalty", sampling.frequency_penalty),
            ("presence_penalty", sampling.presence_penalty),
            ("top_n_sigma", sampling.top_n_sigma),
            ("xtc_probability", sampling.xtc_probability),
            ("xtc_threshold", sampling.xtc_threshold),
            ("dynatemp_range", sampling.dynatemp_range),
            ("dynatemp_exponent", sampling.dynatemp_exponent),
            ("mirostat_tau", sampling.mirostat.tau),
            ("mirostat_eta", sampling.mirostat.eta),
            ("dry_multiplier", sampling.dry.multiplier),
            ("dry_base", sampling.dry.base),
        ];
        if let Some((name, value)) = finite.into_iter().find(|(_, value)| !value.is_finite()) {
            return Err(bad(format!("`{name}` is {value}; send a finite number")));
        }
        if !(sampling.repeat_penalty.is_finite() && sampling.repeat_penalty > 0.0) {
            return Err(bad("`repeat_penalty` must be above 0; 1 switches it off"));
        }
        // Their windows are rings that are allocated whole.
        for (name, window) in [
            ("repeat_last_n", sampling.repeat_last_n),
            ("dry_penalty_last_n", sampling.dry.penalty_last_n),
            ("dry_allowed_length", sampling.dry.allowed_length),
        ] {
            if !(0..=1 << 20).contains(&window) {
                return Err(bad(format!("`{name}` must be between 0 and 1048576")));
            }
        }
        if sampling.mirostat.version > 2 {
            return Err(bad("`mirostat` must be 0, 1 or 2"));
        }
        Ok(sampling)
    }

    fn dry(&self) -> Result<Dry, Error> {
        let base = Dry::default();
        let breakers = self.dry_sequence_breakers.clone();
        let breakers = breakers.unwrap_or(base.sequence_breakers);
        if breakers.len() > MOST_BREAKERS || breakers.iter().any(|one| one.len() > LONGEST_BREAKER)
        {
            return Err(bad(format!(
                "`dry_sequence_breakers` may have {MOST_BREAKERS} strings of {LONGEST_BREAKER} bytes"
            )));
        }
        Ok(Dry {
            multiplier: self.dry_multiplier.unwrap_or(base.multiplier),
            base: self.dry_base.unwrap_or(base.base),
            allowed_length: self.dry_allowed_length.unwrap_or(base.allowed_length),
            // -1 is llama-server's word for the whole context.
            penalty_last_n: match self.dry_penalty_last_n {
                None | Some(-1) => base.penalty_last_n,
                Some(last) => last,
            },
            sequence_breakers: breakers,
        })
    }

    pub(in crate::request) fn biases(&self, vocabulary: usize) -> Result<Vec<(Token, f32)>, Error> {
        self.logit_bias
            .iter()
            .map(|(token, bias)| match token.parse::<Token>() {
                Ok(id) if usize::try_from(id).is_ok_and(|id| id < vocabulary) => Ok((id, *bias)),
                _ => Err(bad(format!(
                    "`logit_bias` contains \"{token}\", which is not a token of this model"
                ))),
            })
            .collect()
    }
}
