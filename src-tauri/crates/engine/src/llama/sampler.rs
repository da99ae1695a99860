//! Choosing the next token from logits.

use super::{
    Token,
    constraint::Constraint,
    model::Model,
    owned_pointer::OwnedPointer,
    sampling::{Dry, Mirostat, Sampling},
};
use llama_cpp_sys_2 as sys;
use std::{ffi::CString, sync::Arc};
use tierbar_core::{Code, Error};

/// A sampler chain of llama.cpp's, and a constraint beside it.
#[derive(Debug)]
pub(crate) struct Sampler {
    chain: SamplerChain,
    constraint: Option<Constraint>,
    greedy: bool,
    /// Whether it chooses without chance.
    pub(crate) deterministic: bool,
    candidates: Vec<sys::llama_token_data>,
    _model: Arc<Model>,
}

/// The samplers that choose among what a token's logits offer, in llama-server's order. It owns those that were added.
#[derive(Debug)]
struct SamplerChain(OwnedPointer<sys::llama_sampler>);

impl SamplerChain {
    fn new() -> Result<Self, Error> {
        // SAFETY: a plain struct of defaults, and a chain that we own.
        let chain = unsafe {
            let raw = sys::llama_sampler_chain_init(sys::llama_sampler_chain_default_params());
            OwnedPointer::new(raw, sys::llama_sampler_free)
        };
        let chain = chain.ok_or_else(|| Error::new(Code::Internal, "no sampler chain"))?;
        Ok(Self(chain))
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
                let (list, count) = (biases.as_ptr(), biases.len() as i32);
                self.add(sys::llama_sampler_init_logit_bias(vocabulary, count, list));
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
            let Mirostat { version, tau, eta } = sampling.mirostat;
            let (temperature, seed) = (sampling.temperature, sampling.seed);
            match version {
                _ if temperature <= 0.0 => self.add(sys::llama_sampler_init_greedy()),
                1 => {
                    self.add(sys::llama_sampler_init_temp(temperature));
                    let mirostat =
                        sys::llama_sampler_init_mirostat(vocabulary, seed, tau, eta, 100);
                    self.add(mirostat);
                }
                2 => {
                    self.add(sys::llama_sampler_init_temp(temperature));
                    self.add(sys::llama_sampler_init_mirostat_v2(seed, tau, eta));
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
        let chain = SamplerChain::new()?;
        chain.build(&model, sampling);
        let last = &prompt[prompt.len().saturating_sub(sampling.looks_back())..];
        // Below 0 are the stand-ins of media.
        for &token in last.iter().filter(|&&token| token >= 0) {
            // SAFETY: the chain is live.
            unsafe { sys::llama_sampler_accept(chain.0.as_ptr(), token) };
        }
        let constraint = (!constraint.is_empty()).then(|| Constraint::new(&model, constraint));
        let constraint = constraint.transpose()?;
        Ok(Self {
            chain,
            greedy: constraint.is_none() && sampling.is_plain_greedy(),
            deterministic: sampling.is_deterministic(),
            constraint,
            candidates: Vec::new(),
            _model: model,
        })
    }

    /// Chooses a token by its logits and accepts the choice.
    pub(crate) fn sample(&mut self, logits: &[f32]) -> Result<Token, Error> {
        if self.greedy {
            return Ok(likeliest_token(logits));
        }
        self.fill(logits);
        let mut token = self.choose(false)?;
        // The grammar looks at one candidate first: testing the whole vocabulary costs more than a decode step.
        if !self.is_allowed(token)? {
            self.fill(logits);
            token = self.choose(true)?;
        }
        // SAFETY: the chain is live.
        unsafe { sys::llama_sampler_accept(self.chain.0.as_ptr(), token) };
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
        unsafe { sys::llama_sampler_apply(self.chain.0.as_ptr(), &raw mut array) };
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

/// The first of the greatest logits. In blocks, whose greatest the compiler finds with vector instructions.
fn likeliest_token(logits: &[f32]) -> Token {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_choose_the_first_token() {
        let mut logits = vec![-1.0_f32; 1000];
        assert_eq!(likeliest_token(&logits), 0);
        logits[700] = 3.0;
        logits[300] = 3.0;
        logits[301] = f32::NAN;
        assert_eq!(likeliest_token(&logits), 300);
        logits[999] = 3.5;
        assert_eq!(likeliest_token(&logits), 999);
    }
}
