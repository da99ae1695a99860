//! Choosing the next token from logits.

use super::{Token, constraint::Constraint, model::Model};
use llama_cpp_sys_2 as sys;
use std::{ffi::CString, ptr::NonNull, sync::Arc};
use tierbar_core::{Code, Error, sampling::Sampling as OwnSampling};

/// llama.h's `LLAMA_DEFAULT_SEED`: a seed of the sampler's own choice.
pub(crate) const RANDOM_SEED: u32 = 0xffff_ffff;

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
    /// Returns these values with a model's own in their place. Its penalties keep sampled text from repeating itself, and would
    /// only distort the likeliest one.
    pub(crate) fn with(self, own: OwnSampling, is_greedy: bool) -> Self {
        let penalty = |penalty: Option<f32>, default| match penalty {
            Some(penalty) if !is_greedy => penalty,
            _ => default,
        };
        Self {
            temperature: own.temperature.unwrap_or(self.temperature),
            top_k: own.top_k.unwrap_or(self.top_k),
            top_p: own.top_p.unwrap_or(self.top_p),
            min_p: own.min_p.unwrap_or(self.min_p),
            repeat_penalty: penalty(own.repeat_penalty, self.repeat_penalty),
            presence_penalty: penalty(own.presence_penalty, self.presence_penalty),
            frequency_penalty: penalty(own.frequency_penalty, self.frequency_penalty),
            ..self
        }
    }

    /// Whether the choice is the likeliest token as the model gives it.
    fn is_plain_greedy(&self) -> bool {
        self.temperature <= 0.0
            && self.mirostat.version == 0
            && self.logit_bias.is_empty()
            && !self.penalizes()
            && !self.dries()
    }

    /// For one of several answers to a prompt: of a fixed seed, each gets its own.
    pub(crate) fn of_answer(mut self, answer: usize) -> Self {
        if self.seed != RANDOM_SEED {
            self.seed = self.seed.wrapping_add(u32::try_from(answer).unwrap_or(0));
        }
        self
    }

    fn penalizes(&self) -> bool {
        let penalties = (
            self.repeat_penalty,
            self.frequency_penalty,
            self.presence_penalty,
        );
        penalties != (1.0, 0.0, 0.0) && self.repeat_last_n > 0
    }

    fn dries(&self) -> bool {
        self.dry.multiplier > 0.0 && self.dry.penalty_last_n > 0
    }

    /// How many of the last tokens before the answer bear on it.
    fn looks_back(&self) -> usize {
        let penalties = if self.penalizes() {
            self.repeat_last_n
        } else {
            0
        };
        let dry = if self.dries() {
            self.dry.penalty_last_n
        } else {
            0
        };
        usize::try_from(penalties.max(dry)).unwrap_or(0)
    }
}

/// A sampler chain of llama.cpp's, and a constraint beside it.
#[derive(Debug)]
pub(crate) struct Sampler {
    chain: NonNull<sys::llama_sampler>,
    constraint: Option<Constraint>,
    greedy: bool,
    candidates: Vec<sys::llama_token_data>,
    _model: Arc<Model>,
}

// SAFETY: a sampler may be used from any thread, one at a time; `&mut self` guards what changes it.
unsafe impl Send for Sampler {}

/// The samplers that choose among what a token's logits offer, in llama-server's order.
struct Chain(NonNull<sys::llama_sampler>);

impl Chain {
    fn new() -> Result<Self, Error> {
        // SAFETY: a plain struct of defaults.
        let chain =
            unsafe { sys::llama_sampler_chain_init(sys::llama_sampler_chain_default_params()) };
        NonNull::new(chain)
            .map(Self)
            .ok_or_else(|| Error::new(Code::Internal, "no sampler chain"))
    }

    /// # Safety
    /// The sampler is live and has no other owner; the chain takes it over.
    unsafe fn add(&self, sampler: *mut sys::llama_sampler) {
        // SAFETY: the chain is live, and the caller's promise.
        unsafe { sys::llama_sampler_chain_add(self.0.as_ptr(), sampler) }
    }

    fn build(&self, model: &Model, sampling: &Sampling) {
        let vocabulary = i32::try_from(model.vocabulary()).unwrap_or(i32::MAX);
        // SAFETY: each init returns a sampler that the chain takes over; arrays and strings are copied.
        unsafe {
            if !sampling.logit_bias.is_empty() {
                let bias = |&(token, bias)| sys::llama_logit_bias { token, bias };
                let biases: Vec<_> = sampling.logit_bias.iter().map(bias).collect();
                let count = i32::try_from(biases.len()).unwrap_or(0);
                self.add(sys::llama_sampler_init_logit_bias(
                    vocabulary,
                    count,
                    biases.as_ptr(),
                ));
            }
            if sampling.penalizes() {
                self.add(sys::llama_sampler_init_penalties(
                    vocabulary,
                    sampling.repeat_last_n,
                    sampling.repeat_penalty,
                    sampling.frequency_penalty,
                    sampling.presence_penalty,
                ));
            }
            if sampling.dries() {
                self.dry(model, &sampling.dry);
            }
            match (sampling.temperature, sampling.mirostat) {
                (..=0.0, _) => self.add(sys::llama_sampler_init_greedy()),
                (
                    temperature,
                    Mirostat {
                        version: 1,
                        tau,
                        eta,
                    },
                ) => {
                    self.add(sys::llama_sampler_init_temp(temperature));
                    self.add(sys::llama_sampler_init_mirostat(
                        vocabulary,
                        sampling.seed,
                        tau,
                        eta,
                        100,
                    ));
                }
                (
                    temperature,
                    Mirostat {
                        version: 2,
                        tau,
                        eta,
                    },
                ) => {
                    self.add(sys::llama_sampler_init_temp(temperature));
                    self.add(sys::llama_sampler_init_mirostat_v2(sampling.seed, tau, eta));
                }
                _ => self.cut_and_choose(sampling),
            }
        }
    }

    /// # Safety
    /// As [`Self::add`].
    unsafe fn cut_and_choose(&self, sampling: &Sampling) {
        // SAFETY: each init returns a sampler that the chain takes over.
        unsafe {
            if sampling.top_n_sigma >= 0.0 {
                self.add(sys::llama_sampler_init_top_n_sigma(sampling.top_n_sigma));
            }
            if sampling.top_k > 0 {
                self.add(sys::llama_sampler_init_top_k(sampling.top_k));
            }
            if sampling.typical_p < 1.0 {
                self.add(sys::llama_sampler_init_typical(sampling.typical_p, 1));
            }
            if sampling.top_p < 1.0 {
                self.add(sys::llama_sampler_init_top_p(sampling.top_p, 1));
            }
            if sampling.min_p > 0.0 {
                self.add(sys::llama_sampler_init_min_p(sampling.min_p, 1));
            }
            if sampling.xtc_probability > 0.0 {
                self.add(sys::llama_sampler_init_xtc(
                    sampling.xtc_probability,
                    sampling.xtc_threshold,
                    1,
                    sampling.seed,
                ));
            }
            self.add(sys::llama_sampler_init_temp_ext(
                sampling.temperature,
                sampling.dynatemp_range,
                sampling.dynatemp_exponent,
            ));
            self.add(sys::llama_sampler_init_dist(sampling.seed));
        }
    }

    /// # Safety
    /// As [`Self::add`].
    unsafe fn dry(&self, model: &Model, dry: &Dry) {
        let breakers: Vec<_> = dry
            .sequence_breakers
            .iter()
            .filter_map(|text| CString::new(text.as_str()).ok())
            .collect();
        let mut pointers: Vec<_> = breakers.iter().map(|text| text.as_ptr()).collect();
        // SAFETY: the strings are NUL-terminated, outlive the call and are copied; the chain takes the sampler over.
        unsafe {
            self.add(sys::llama_sampler_init_dry(
                model.vocab(),
                dry.multiplier,
                dry.base,
                dry.allowed_length,
                dry.penalty_last_n,
                pointers.as_mut_ptr(),
                pointers.len(),
            ));
        }
    }
}

impl Sampler {
    /// `constraint`: grammar and thinking budget, as a JSON object that the shim reads; empty for none. `prompt`: what the
    /// answer continues, for the penalties.
    pub(crate) fn new(
        model: Arc<Model>,
        sampling: &Sampling,
        constraint: &str,
        prompt: &[Token],
    ) -> Result<Self, Error> {
        let chain = Chain::new()?;
        let mut sampler = Self {
            chain: chain.0,
            constraint: None,
            greedy: constraint.is_empty() && sampling.is_plain_greedy(),
            candidates: Vec::new(),
            _model: Arc::clone(&model),
        };
        chain.build(&model, sampling);
        if !constraint.is_empty() {
            sampler.constraint = Some(Constraint::new(&model, constraint)?);
        }
        let last = &prompt[prompt.len().saturating_sub(sampling.looks_back())..];
        // Below 0 are the stand-ins of media.
        for &token in last.iter().filter(|&&token| token >= 0) {
            // SAFETY: the chain is live.
            unsafe { sys::llama_sampler_accept(chain.0.as_ptr(), token) };
        }
        Ok(sampler)
    }

    /// Chooses a token by its logits and accepts the choice.
    pub(crate) fn sample(&mut self, logits: &[f32]) -> Result<Token, Error> {
        if self.greedy {
            return Ok(likeliest(logits));
        }
        self.fill(logits);
        let mut token = self.choose(false)?;
        // The grammar looks at one candidate first: testing the whole vocabulary costs more than a decode step.
        if !self.is_allowed(token)? {
            self.fill(logits);
            token = self.choose(true)?;
        }
        // SAFETY: the chain is live.
        unsafe { sys::llama_sampler_accept(self.chain.as_ptr(), token) };
        if let Some(constraint) = &mut self.constraint {
            constraint.accept(token)?;
        }
        Ok(token)
    }

    fn fill(&mut self, logits: &[f32]) {
        self.candidates.clear();
        self.candidates.extend(
            logits
                .iter()
                .zip(0..)
                .map(|(&logit, id)| sys::llama_token_data { id, logit, p: 0.0 }),
        );
    }

    fn choose(&mut self, with_grammar: bool) -> Result<Token, Error> {
        let mut array = sys::llama_token_data_array {
            data: self.candidates.as_mut_ptr(),
            size: self.candidates.len(),
            selected: -1,
            sorted: false,
        };
        if let Some(constraint) = &mut self.constraint {
            constraint.apply(&mut array, with_grammar)?;
        }
        // SAFETY: the chain is live; the array points at our candidates, which the samplers reorder in place.
        unsafe { sys::llama_sampler_apply(self.chain.as_ptr(), &raw mut array) };
        let selected = usize::try_from(array.selected).unwrap_or(0);
        let chosen = self.candidates.get(selected);
        Ok(chosen.map_or(0, |candidate| candidate.id))
    }

    fn is_allowed(&mut self, token: Token) -> Result<bool, Error> {
        let Some(constraint) = &mut self.constraint else {
            return Ok(true);
        };
        let mut one = sys::llama_token_data {
            id: token,
            logit: 1.0,
            p: 0.0,
        };
        let mut array = sys::llama_token_data_array {
            data: &raw mut one,
            size: 1,
            selected: -1,
            sorted: false,
        };
        constraint.apply(&mut array, true)?;
        Ok(one.logit.is_finite())
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: freed once; the chain frees what was added to it.
        unsafe { sys::llama_sampler_free(self.chain.as_ptr()) };
    }
}

/// The first of the greatest logits. In blocks, whose greatest the compiler finds with vector instructions.
fn likeliest(logits: &[f32]) -> Token {
    const BLOCK: usize = 256;
    let mut best = (f32::NEG_INFINITY, 0);
    for (number, block) in logits.chunks(BLOCK).enumerate() {
        let greatest = block
            .iter()
            .fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
        if greatest > best.0 {
            best = (greatest, number);
        }
    }
    let start = best.1 * BLOCK;
    let block = logits.get(start..).unwrap_or_default();
    let within = block.iter().position(|&logit| logit == best.0).unwrap_or(0);
    Token::try_from(start + within).unwrap_or(0)
}

/// A token with its logarithmic probability, before any sampler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LogProbability {
    pub(crate) token: Token,
    pub(crate) value: f32,
}

/// Returns how many tokens are likelier than this one.
pub(crate) fn likelier(logits: &[f32], token: Token) -> usize {
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
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a logarithm of at most the vocabulary's size"
    )]
    let whole = greatest + sum.ln() as f32;
    let logit = |token: Token| {
        let at = usize::try_from(token).ok();
        let known = at.and_then(|at| logits.get(at));
        known.copied().unwrap_or(f32::NEG_INFINITY)
    };
    let of = |token: Token| LogProbability {
        token,
        value: logit(token) - whole,
    };
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
    fn ties_choose_the_first_token() {
        let mut logits = vec![-1.0_f32; 1000];
        assert_eq!(likeliest(&logits), 0);
        logits[700] = 3.0;
        logits[300] = 3.0;
        logits[301] = f32::NAN;
        assert_eq!(likeliest(&logits), 300);
        logits[999] = 3.5;
        assert_eq!(likeliest(&logits), 999);
    }

    #[test]
    fn log_probabilities_are_softmax_values_in_order() {
        let (chosen, top) = log_probabilities(&[0.0, 2.0, 1.0, 2.0], 2, 3);
        let whole = (1.0 + 2.0 * 2.0_f32.exp() + 1.0_f32.exp()).ln();
        assert!((chosen.value - (1.0 - whole)).abs() < 1e-6);
        assert_eq!(
            top.iter().map(|one| one.token).collect::<Vec<_>>(),
            [1, 3, 2]
        );
        assert!((top[0].value - (2.0 - whole)).abs() < 1e-6);
        assert_eq!(log_probabilities(&[1.0], 0, 5).1.len(), 1);
        assert!(log_probabilities(&[1.0, 2.0], 0, 0).1.is_empty());
        let (_, top) = log_probabilities(&[f32::NAN, 1.0, 5.0, 3.0, 4.0], 1, 2);
        assert_eq!([top[0].token, top[1].token], [2, 4]);
        assert_eq!(
            [0, 1, 2].map(|token| likelier(&[0.0, 2.0, 1.0, 2.0], token)),
            [3, 0, 2]
        );
    }
}
