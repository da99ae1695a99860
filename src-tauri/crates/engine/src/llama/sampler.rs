//! Choosing the next token from logits.

use super::{Token, context::Context, model::Model};
use llama_cpp_sys_2 as sys;
use std::{ffi::CString, ptr::NonNull, sync::Arc};
use tierbar_core::{Code, Error};

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
    pub(crate) repeat_penalty: f32,
    pub(crate) repeat_last_n: i32,
    pub(crate) frequency_penalty: f32,
    pub(crate) presence_penalty: f32,
    pub(crate) seed: u32,
    pub(crate) logit_bias: Vec<(Token, f32)>,
    /// GBNF; empty for none.
    pub(crate) grammar: String,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            typical_p: 1.0,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            seed: RANDOM_SEED,
            logit_bias: Vec::new(),
            grammar: String::new(),
        }
    }
}

/// A sampler chain of llama.cpp's, and a grammar beside it.
#[derive(Debug)]
pub(crate) struct Sampler {
    chain: NonNull<sys::llama_sampler>,
    grammar: Option<NonNull<sys::llama_sampler>>,
    candidates: Vec<sys::llama_token_data>,
    _model: Arc<Model>,
}

impl Sampler {
    pub(crate) fn new(model: Arc<Model>, sampling: &Sampling) -> Result<Self, Error> {
        let vocabulary = i32::try_from(model.vocabulary()).unwrap_or(i32::MAX);
        // SAFETY: each init returns a sampler that the chain takes over; the bias array is copied.
        let chain = unsafe {
            let chain = sys::llama_sampler_chain_init(sys::llama_sampler_chain_default_params());
            let add = |sampler| sys::llama_sampler_chain_add(chain, sampler);
            if !sampling.logit_bias.is_empty() {
                let biases: Vec<_> = sampling
                    .logit_bias
                    .iter()
                    .map(|&(token, bias)| sys::llama_logit_bias { token, bias })
                    .collect();
                let count = i32::try_from(biases.len()).unwrap_or(0);
                add(sys::llama_sampler_init_logit_bias(
                    vocabulary,
                    count,
                    biases.as_ptr(),
                ));
            }
            let penalties = (
                sampling.repeat_penalty,
                sampling.frequency_penalty,
                sampling.presence_penalty,
            );
            if penalties != (1.0, 0.0, 0.0) && sampling.repeat_last_n > 0 {
                let (repeat, frequency, presence) = penalties;
                add(sys::llama_sampler_init_penalties(
                    vocabulary,
                    sampling.repeat_last_n,
                    repeat,
                    frequency,
                    presence,
                ));
            }
            if sampling.temperature <= 0.0 {
                add(sys::llama_sampler_init_greedy());
            } else {
                if sampling.top_k > 0 {
                    add(sys::llama_sampler_init_top_k(sampling.top_k));
                }
                if sampling.typical_p < 1.0 {
                    add(sys::llama_sampler_init_typical(sampling.typical_p, 1));
                }
                if sampling.top_p < 1.0 {
                    add(sys::llama_sampler_init_top_p(sampling.top_p, 1));
                }
                if sampling.min_p > 0.0 {
                    add(sys::llama_sampler_init_min_p(sampling.min_p, 1));
                }
                add(sys::llama_sampler_init_temp(sampling.temperature));
                add(sys::llama_sampler_init_dist(sampling.seed));
            }
            chain
        };
        let chain =
            NonNull::new(chain).ok_or_else(|| Error::new(Code::Internal, "no sampler chain"))?;
        let mut sampler = Self {
            chain,
            grammar: None,
            candidates: Vec::new(),
            _model: Arc::clone(&model),
        };
        if !sampling.grammar.is_empty() {
            sampler.grammar = Some(grammar(&model, &sampling.grammar)?);
        }
        Ok(sampler)
    }

    /// Samples from the last evaluated token's logits and accepts the choice.
    pub(crate) fn sample(&mut self, context: &mut Context) -> Result<Token, Error> {
        let logits = context
            .logits()
            .ok_or_else(|| Error::new(Code::Internal, "no logits to sample from"))?;
        self.fill(logits);
        let mut token = self.choose(false);
        // The grammar looks at one candidate first: testing the whole vocabulary costs more than a decode step.
        if !self.grammar_allows(token) {
            self.fill(logits);
            token = self.choose(true);
        }
        self.accept(token)?;
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

    fn choose(&mut self, with_grammar: bool) -> Token {
        let mut array = self.candidate_array();
        // SAFETY: the samplers are live; the array points at our candidates, which they reorder in place.
        unsafe {
            if let Some(grammar) = self.grammar.filter(|_| with_grammar) {
                sys::llama_sampler_apply(grammar.as_ptr(), &raw mut array);
            }
            sys::llama_sampler_apply(self.chain.as_ptr(), &raw mut array);
        }
        let selected = usize::try_from(array.selected).unwrap_or(0);
        self.candidates
            .get(selected)
            .map_or(0, |candidate| candidate.id)
    }

    fn candidate_array(&mut self) -> sys::llama_token_data_array {
        sys::llama_token_data_array {
            data: self.candidates.as_mut_ptr(),
            size: self.candidates.len(),
            selected: -1,
            sorted: false,
        }
    }

    fn grammar_allows(&self, token: Token) -> bool {
        let Some(grammar) = self.grammar else {
            return true;
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
        // SAFETY: the grammar is live; the array holds the one candidate.
        unsafe { sys::llama_sampler_apply(grammar.as_ptr(), &raw mut array) };
        one.logit.is_finite()
    }

    fn accept(&mut self, token: Token) -> Result<(), Error> {
        // SAFETY: the chain is live.
        unsafe { sys::llama_sampler_accept(self.chain.as_ptr(), token) };
        if let Some(grammar) = self.grammar {
            // SAFETY: the grammar is live; this entry point catches the exception of a grammar at its end.
            let status = unsafe { sys::llama_rs_sampler_accept(grammar.as_ptr(), token) };
            if status != sys::LLAMA_RS_STATUS_OK {
                return Err(Error::new(
                    Code::BadRequest,
                    "the grammar allows no continuation of the answer",
                ));
            }
        }
        Ok(())
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: freed once; the chain frees what was added to it.
        unsafe {
            sys::llama_sampler_free(self.chain.as_ptr());
            if let Some(grammar) = self.grammar {
                sys::llama_sampler_free(grammar.as_ptr());
            }
        }
    }
}

fn grammar(model: &Model, text: &str) -> Result<NonNull<sys::llama_sampler>, Error> {
    let refused = || {
        Error::new(Code::BadRequest, "the grammar does not parse")
            .hint("its root rule must be `root`")
    };
    let text = CString::new(text).map_err(|_| refused())?;
    // SAFETY: both strings are NUL-terminated and copied; the entry point catches C++ exceptions.
    let raw = unsafe {
        sys::llama_rs_sampler_init_grammar(model.vocab(), text.as_ptr(), c"root".as_ptr())
    };
    NonNull::new(raw).ok_or_else(refused)
}
