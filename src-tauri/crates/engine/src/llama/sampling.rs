//! How the next token is chosen.

use super::Token;

/// llama.h's `LLAMA_DEFAULT_SEED`: a seed of the sampler's own choice.
const RANDOM_SEED: u32 = 0xffff_ffff;

/// Sampling parameters, with llama-server's names and defaults.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sampling {
    /// 0 or less: always the likeliest token.
    pub(crate) temperature: f32,
    /// 0 or less: off.
    pub(crate) top_k: i32,
    pub(crate) top_p: f32,
    pub(crate) min_p: f32,
    pub(crate) typical_p: f32,
    /// Below 0: off.
    pub(crate) top_n_sigma: f32,
    /// 0: off.
    pub(crate) xtc_probability: f32,
    pub(crate) xtc_threshold: f32,
    /// The temperature's range by the entropy of the choice; 0: the temperature alone.
    pub(crate) dynatemp_range: f32,
    pub(crate) dynatemp_exponent: f32,
    pub(crate) repeat_penalty: f32,
    /// How many of the last tokens, the prompt's too, the penalties look at.
    pub(crate) repeat_last_n: i32,
    pub(crate) frequency_penalty: f32,
    pub(crate) presence_penalty: f32,
    pub(crate) dry: Dry,
    pub(crate) mirostat: Mirostat,
    pub(crate) seed: u32,
    pub(crate) logit_bias: Vec<(Token, f32)>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            typical_p: 1.0,
            top_n_sigma: -1.0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            dynatemp_range: 0.0,
            dynatemp_exponent: 1.0,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            dry: Dry::default(),
            mirostat: Mirostat::default(),
            seed: RANDOM_SEED,
            logit_bias: Vec::new(),
        }
    }
}

impl Sampling {
    /// Whether the choice is the likeliest token as the model gives it.
    pub(super) fn is_plain_greedy(&self) -> bool {
        self.temperature <= 0.0
            && self.mirostat.version == 0
            && self.logit_bias.is_empty()
            && !self.penalizes()
            && !self.dries()
    }

    /// Whether the choice has no chance in it. One candidate leaves none, but mirostat takes the place of that cut.
    pub(super) fn is_deterministic(&self) -> bool {
        self.temperature <= 0.0 || (self.top_k == 1 && self.mirostat.version == 0)
    }

    /// For one of several answers to a prompt: of a fixed seed, each gets its own.
    pub(crate) fn of_answer(mut self, answer: usize) -> Self {
        if self.seed != RANDOM_SEED {
            self.seed = self.seed.wrapping_add(u32::try_from(answer).unwrap_or(0));
        }
        self
    }

    pub(super) fn penalizes(&self) -> bool {
        let penalties = (
            self.repeat_penalty,
            self.frequency_penalty,
            self.presence_penalty,
        );
        penalties != (1.0, 0.0, 0.0) && self.repeat_last_n > 0
    }

    pub(super) fn dries(&self) -> bool {
        self.dry.multiplier > 0.0 && self.dry.penalty_last_n > 0
    }

    /// How many of the last tokens before the answer bear on it.
    pub(super) fn looks_back(&self) -> usize {
        let penalties = self.penalizes().then_some(self.repeat_last_n);
        let dry = self.dries().then_some(self.dry.penalty_last_n);
        usize::try_from(penalties.max(dry).unwrap_or(0)).unwrap_or(0)
    }
}

/// Don't-repeat-yourself: <https://github.com/oobabooga/text-generation-webui/pull/5677>.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dry {
    /// 0: off.
    pub(crate) multiplier: f32,
    pub(crate) base: f32,
    pub(crate) allowed_length: i32,
    pub(crate) penalty_last_n: i32,
    pub(crate) sequence_breakers: Vec<String>,
}

impl Default for Dry {
    fn default() -> Self {
        Self {
            multiplier: 0.0,
            base: 1.75,
            allowed_length: 2,
            penalty_last_n: 4096,
            sequence_breakers: ["\n", ":", "\"", "*"].map(str::to_owned).into(),
        }
    }
}

/// <https://arxiv.org/abs/2007.14966>. It takes the place of all samplers that cut the choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mirostat {
    /// 0: off.
    pub(crate) version: u8,
    pub(crate) tau: f32,
    pub(crate) eta: f32,
}

impl Default for Mirostat {
    fn default() -> Self {
        Self {
            version: 0,
            tau: 5.0,
            eta: 0.1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_candidate_leaves_no_chance() {
        for (temperature, top_k, version, is_deterministic) in [
            (0.0, 40, 0, true),
            (-1.0, 40, 2, true),
            (0.8, 1, 0, true),
            (0.8, 1, 2, false),
            (0.8, 2, 0, false),
            (0.8, 0, 0, false),
        ] {
            let mirostat = Mirostat {
                version,
                ..Mirostat::default()
            };
            let sampling = Sampling {
                temperature,
                top_k,
                mirostat,
                ..Sampling::default()
            };
            assert_eq!(
                sampling.is_deterministic(),
                is_deterministic,
                "{sampling:?}"
            );
        }
    }
}
