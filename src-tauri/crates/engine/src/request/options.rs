//! What requests for chats and completions share: how long an answer may be, how tokens are chosen, and the form of the answer.

use super::{
    bad,
    guided::{Guided, Rule},
    held::{Forms, hold},
    within,
};
use crate::llama::{Dry, Mirostat, Sampling, Token, schema_grammar, with_forms};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};
use std::borrow::Cow;
use tierbar_core::{Code, Error, sampling::Sampling as OwnSampling};
use tierbar_request_fields::wrong_field;

const LONGEST_GRAMMAR: usize = 64 << 10;
const MOST_ANSWERS: u32 = 16;
/// OpenAI allows 20, llama-server as many as there are tokens.
const MOST_ALTERNATIVES: usize = 100;
const MOST_STOPS: usize = 64;
const LONGEST_STOPS: usize = 16 << 10;
/// Tokens that a penalty looks at that is to look at all.
pub(super) const FAR_BACK: i32 = 1 << 16;
const MOST_BREAKERS: usize = 64;
const LONGEST_BREAKER: usize = 64;

/// What both kinds of request share.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Options {
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    n_predict: Option<i64>,
    n: Option<u32>,
    best_of: Option<u32>,
    echo: Option<bool>,
    logprobs: Option<LogProbabilities>,
    top_logprobs: Option<usize>,
    n_probs: Option<usize>,
    /// vLLM's: how many alternatives to report per token of the prompt.
    prompt_logprobs: Option<usize>,
    /// vLLM's: no answer is shorter.
    min_tokens: Option<usize>,
    /// vLLM's: tokens that end the answer.
    stop_token_ids: Option<Vec<Token>>,
    temperature: Option<f32>,
    dynatemp_range: Option<f32>,
    dynatemp_exponent: Option<f32>,
    top_k: Option<i32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    typical_p: Option<f32>,
    top_n_sigma: Option<f32>,
    xtc_probability: Option<f32>,
    xtc_threshold: Option<f32>,
    mirostat: Option<u8>,
    mirostat_tau: Option<f32>,
    mirostat_eta: Option<f32>,
    dry_multiplier: Option<f32>,
    dry_base: Option<f32>,
    dry_allowed_length: Option<i32>,
    dry_penalty_last_n: Option<i32>,
    dry_sequence_breakers: Option<Vec<String>>,
    repeat_penalty: Option<f32>,
    /// vLLM's: a `repeat_penalty` that looks at everything.
    repetition_penalty: Option<f32>,
    repeat_last_n: Option<i32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    seed: Option<i64>,
    #[serde(deserialize_with = "biases")]
    logit_bias: Vec<(String, f32)>,
    stop: Option<Stop>,
    ignore_eos: Option<bool>,
    cache_prompt: Option<bool>,
    grammar: Option<String>,
    json_schema: Option<Value>,
    response_format: Option<Value>,
    #[serde(flatten)]
    guided: Guided,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// Chats ask with a flag and a number beside it, completions with the number.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`logprobs` as a flag or a number")]
enum LogProbabilities {
    Wanted(bool),
    Top(usize),
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`stop` as a text or a list of texts")]
enum Stop {
    One(String),
    Many(Vec<String>),
}

/// Returns what is wrong with a field that both kinds of request share, if one is.
pub(crate) fn wrong_option(body: &[u8]) -> Option<String> {
    wrong_field::describe::<Options>(body).or_else(|| wrong_field::describe::<Guided>(body))
}

/// As OpenAI has it, an object of token ids and numbers, or as llama-server has it, a list of pairs of them, in which `false`
/// forbids the token.
fn biases<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, f32)>, D::Error> {
    let wrong = || {
        D::Error::custom(
            "`logit_bias` is neither an object of token ids and numbers nor a list of such pairs",
        )
    };
    let token = |token: &Value| match token {
        Value::Number(id) => Some(id.to_string()),
        Value::String(id) => Some(id.clone()),
        _ => None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "llama.cpp's biases are f32"
    )]
    let bias = |bias: &Value| match bias {
        Value::Bool(false) => Some(f32::NEG_INFINITY),
        bias => bias.as_f64().map(|bias| bias as f32),
    };
    match Value::deserialize(from)? {
        Value::Null => Ok(Vec::new()),
        Value::Object(named) => {
            let pairs = named
                .iter()
                .map(|(id, value)| Some((id.clone(), bias(value)?)));
            pairs.collect::<Option<_>>().ok_or_else(wrong)
        }
        Value::Array(pairs) => {
            let pair = |pair: &Value| match &**pair.as_array()? {
                [id, value] => Some((token(id)?, bias(value)?)),
                _ => None,
            };
            pairs
                .iter()
                .map(pair)
                .collect::<Option<_>>()
                .ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

impl Options {
    pub(crate) fn stream(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub(crate) fn include_usage(&self) -> bool {
        self.stream_options
            .as_ref()
            .and_then(|options| options.include_usage)
            .unwrap_or(false)
    }

    pub(crate) fn cache_prompt(&self) -> bool {
        self.cache_prompt.unwrap_or(true)
    }

    pub(crate) fn ignore_eos(&self) -> bool {
        self.ignore_eos.unwrap_or(false)
    }

    pub(crate) fn echo(&self) -> bool {
        self.echo.unwrap_or(false)
    }

    /// Answers to each prompt.
    pub(crate) fn answers(&self) -> Result<u32, Error> {
        let n = self.n.unwrap_or(1);
        if self.best_of.is_some_and(|best_of| best_of != n) {
            return Err(bad("`best_of` must equal `n`: every answer is returned"));
        }
        if (1..=MOST_ANSWERS).contains(&n) {
            Ok(n)
        } else {
            Err(bad(format!("`n` is {n}; send 1 to {MOST_ANSWERS}")))
        }
    }

    /// How many alternatives to report per token; `None` reports no probabilities.
    pub(crate) fn log_probabilities(&self) -> Result<Option<usize>, Error> {
        let top = match (&self.logprobs, self.n_probs) {
            (Some(LogProbabilities::Wanted(true)), _) => Some(self.top_logprobs.unwrap_or(0)),
            (Some(LogProbabilities::Top(top)), _) => Some(*top),
            (_, Some(top)) if top > 0 => Some(top),
            _ => None,
        };
        match top {
            Some(top) if top > MOST_ALTERNATIVES => Err(bad(format!(
                "{top} alternatives per token were requested; the limit is {MOST_ALTERNATIVES}"
            ))),
            top => Ok(top),
        }
    }

    /// How many alternatives to report per token of the prompt; `None` reports none. An `echo` with `logprobs` asks for them too.
    pub(crate) fn prompt_probabilities(&self) -> Result<Option<usize>, Error> {
        let echoed = self.log_probabilities()?.filter(|_| self.echo());
        match self.prompt_logprobs {
            Some(_) if self.stream() => Err(bad(
                "`prompt_logprobs` cannot be streamed: send it with \"stream\": false, or use `echo` with `logprobs`",
            )),
            Some(top) if top > MOST_ALTERNATIVES => Err(bad(format!(
                "`prompt_logprobs` is {top}; the limit is {MOST_ALTERNATIVES}"
            ))),
            own => Ok(own.max(echoed)),
        }
    }

    /// The alternatives of `prompt_logprobs` alone.
    pub(crate) fn prompt_logprobs(&self) -> Option<usize> {
        self.prompt_logprobs
    }

    /// # Errors
    /// `BadRequest` for what is only known of a text that is continued.
    pub(crate) fn check_chat(&self) -> Result<(), Error> {
        let named = [
            ("echo", self.echo()),
            ("prompt_logprobs", self.prompt_logprobs.is_some()),
        ];
        match named.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(bad(format!("`{name}` is not supported in chats"))
                .hint("send the formatted prompt to /v1/completions")),
            None => Ok(()),
        }
    }

    /// The fewest tokens of an answer.
    pub(crate) fn min_tokens(&self) -> Result<usize, Error> {
        let min = self.min_tokens.unwrap_or(0);
        let (grammar, schema) = match min {
            0 => (None, None),
            _ => self.rules()?,
        };
        // Once its form is complete, no token but the end fits.
        if grammar.is_some() || schema.is_some() {
            return Err(bad(
                "`min_tokens` cannot be combined with a grammar or JSON schema, which says where the answer ends",
            )
            .hint("leave out `min_tokens`, and let the form ask for more"));
        }
        match self.max_tokens()? {
            Some(max) if min > max => Err(bad(format!(
                "`min_tokens` is {min}, more than the {max} of `max_tokens`"
            ))),
            _ => Ok(min),
        }
    }

    /// Tokens that end the answer, besides the model's own.
    pub(crate) fn stop_tokens(&self, vocabulary: usize) -> Result<Vec<Token>, Error> {
        let stops = self.stop_token_ids.clone().unwrap_or_default();
        if stops.len() > MOST_STOPS {
            let count = stops.len();
            return Err(bad(format!(
                "`stop_token_ids` has {count} tokens; send at most {MOST_STOPS}"
            )));
        }
        let known = |&&token: &&Token| usize::try_from(token).is_ok_and(|id| id < vocabulary);
        match stops.iter().find(|token| !known(token)) {
            Some(token) => Err(bad(format!(
                "`stop_token_ids` contains {token}, which is not a token of this model"
            ))),
            None => Ok(stops),
        }
    }

    /// Tokens to generate at most; `None`, or llama-server's -1, for as many as the context holds.
    pub(crate) fn max_tokens(&self) -> Result<Option<usize>, Error> {
        let requested = self.max_completion_tokens.or(self.max_tokens);
        match requested.or(self.n_predict) {
            None | Some(-1) => Ok(None),
            Some(requested) => usize::try_from(requested).map(Some).map_err(|_| {
                bad(format!(
                    "`max_tokens` is {requested}; send 0 or more, or omit it"
                ))
            }),
        }
    }

    pub(crate) fn stops(&self) -> Result<Vec<String>, Error> {
        let stops = match &self.stop {
            None => Vec::new(),
            Some(Stop::One(stop)) => vec![stop.clone()],
            Some(Stop::Many(stops)) => stops.clone(),
        };
        // Each token of the answer is held against all of them.
        let bytes: usize = stops.iter().map(String::len).sum();
        if stops.len() > MOST_STOPS || bytes > LONGEST_STOPS {
            return Err(bad(format!(
                "`stop` has {} strings of {bytes} bytes; send at most {MOST_STOPS} of {LONGEST_STOPS} bytes together",
                stops.len()
            )));
        }
        Ok(stops)
    }

    /// `own`: the model's, where the request does not say.
    ///
    /// # Errors
    /// `BadRequest` for a value out of range.
    pub(crate) fn sampling(&self, vocabulary: usize, own: OwnSampling) -> Result<Sampling, Error> {
        let warmth = self.temperature.or(own.temperature);
        let is_greedy = warmth.is_some_and(|warmth| warmth <= 0.0);
        let base = Sampling::default().with(own, is_greedy);
        let sampling = Sampling {
            temperature: self.temperature.unwrap_or(base.temperature),
            top_k: self.top_k.unwrap_or(base.top_k),
            top_p: self.top_p.unwrap_or(base.top_p),
            min_p: self.min_p.unwrap_or(base.min_p),
            typical_p: self.typical_p.unwrap_or(base.typical_p),
            top_n_sigma: self.top_n_sigma.unwrap_or(base.top_n_sigma),
            xtc_probability: self.xtc_probability.unwrap_or(base.xtc_probability),
            xtc_threshold: self.xtc_threshold.unwrap_or(base.xtc_threshold),
            dynatemp_range: self.dynatemp_range.unwrap_or(base.dynatemp_range),
            dynatemp_exponent: self.dynatemp_exponent.unwrap_or(base.dynatemp_exponent),
            repeat_penalty: self
                .repeat_penalty
                .or(self.repetition_penalty)
                .unwrap_or(base.repeat_penalty),
            repeat_last_n: match self.repeat_last_n {
                // Ollama's and llama-server's word for the whole context.
                Some(-1) => FAR_BACK,
                Some(tokens) => tokens,
                // vLLM's penalty is for the whole text.
                None if self.repeat_penalty.is_none() && self.repetition_penalty.is_some() => {
                    FAR_BACK
                }
                None => base.repeat_last_n,
            },
            frequency_penalty: self.frequency_penalty.unwrap_or(base.frequency_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(base.presence_penalty),
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

    pub(super) fn dry(&self) -> Result<Dry, Error> {
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

    /// How a completion is constrained; empty for not at all.
    pub(crate) fn constraint(&self) -> Result<String, Error> {
        let grammar = match self.rules()? {
            (None, None) => return Ok(String::new()),
            (Some(grammar), _) => grammar.into_owned(),
            (None, Some(schema)) => {
                let grammar = grammar_of(&schema)?;
                within("the JSON schema's grammar", &grammar, LONGEST_GRAMMAR)?;
                grammar
            }
        };
        Ok(json!({"grammar": grammar}).to_string())
    }

    /// Names the schema that is the reason for an error of the grammar.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let Ok((None, Some(schema))) = self.rules() else {
            return error;
        };
        if error.code != Code::BadRequest {
            return error;
        }
        match grammar_of(&schema) {
            Err(refused) => refused,
            Ok(_)
                if error
                    .message
                    .starts_with("the answer cannot be constrained") =>
            {
                error.hint("send a simpler schema")
            }
            Ok(_) => error,
        }
    }

    /// The field that a grammar comes from, for a message.
    pub(super) fn grammar_name(&self) -> String {
        match &self.grammar {
            Some(own) if !own.is_empty() => "`grammar`".to_owned(),
            _ => self.guided.names(),
        }
    }

    /// The client's own GBNF, or one for what it asks for in vLLM's fields.
    pub(super) fn grammar(&self) -> Result<Option<Cow<'_, str>>, Error> {
        let own = self.grammar.as_deref();
        if let Some(own) = own.filter(|grammar| !grammar.is_empty()) {
            return Ok(Some(Cow::Borrowed(own)));
        }
        Ok(match self.guided.rule()? {
            Some(Rule::Grammar(grammar)) => Some(Cow::Owned(grammar)),
            Some(Rule::Schema(_)) | None => None,
        })
    }

    /// The grammar or the JSON schema that the answer must follow.
    pub(super) fn rules(&self) -> Result<(Option<Cow<'_, str>>, Option<Value>), Error> {
        let own_grammar = self.grammar.as_ref().is_some_and(|own| !own.is_empty());
        let (own_schema, guided) = (self.schema()?, self.guided.rule()?);
        if guided.is_some() && (own_grammar || own_schema.is_some()) {
            return Err(bad(format!(
                "{} cannot be combined with another form for the answer",
                self.guided.names()
            )));
        }
        let schema = match guided {
            Some(Rule::Schema(schema)) => Some(schema),
            Some(Rule::Grammar(_)) | None => own_schema,
        };
        if let Some(schema) = &schema {
            within("the JSON schema", &schema.to_string(), LONGEST_GRAMMAR)?;
        }
        let grammar = self.grammar()?;
        if let Some(grammar) = &grammar {
            within("the grammar", grammar, LONGEST_GRAMMAR)?;
        }
        if grammar.is_some() && schema.is_some() {
            return Err(bad("`grammar` cannot be combined with a JSON schema"));
        }
        Ok((grammar, schema))
    }

    pub(super) fn biases(&self, vocabulary: usize) -> Result<Vec<(Token, f32)>, Error> {
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

    /// The JSON schema that the answer must follow, from any of the places where clients put it.
    pub(super) fn schema(&self) -> Result<Option<Value>, Error> {
        let any_object = || json!({"type": "object"});
        let Some(format) = &self.response_format else {
            return Ok(self.json_schema.clone());
        };
        if format.is_null() {
            return Ok(self.json_schema.clone());
        }
        let schema = match format.get("type").and_then(Value::as_str) {
            // Reject rather than silently return free text.
            None => {
                return Err(bad("`response_format` is not an object with a `type`")
                    .hint("send {\"type\": \"json_object\"}, or {\"type\": \"json_schema\", \"json_schema\": {\"name\": …, \"schema\": …}}"));
            }
            Some("text") => return Ok(self.json_schema.clone()),
            Some("json_object") => format.get("schema").or(self.json_schema.as_ref()),
            Some("json_schema") => format
                .pointer("/json_schema/schema")
                .or_else(|| format.get("schema")),
            Some(other) => {
                return Err(bad(format!(
                    "`response_format.type` is \"{other}\": use text, json_object or json_schema"
                )));
            }
        };
        Ok(Some(
            schema
                .cloned()
                .filter(|schema| schema != &json!({}) && !schema.is_null())
                .unwrap_or_else(any_object),
        ))
    }
}

/// The name of the schema of an answer, in messages.
pub(super) const SCHEMA: &str = "the JSON schema";

pub(super) fn grammar_of(schema: &Value) -> Result<String, Error> {
    let mut forms = Forms::beside(&schema.to_string());
    let held = hold(schema, SCHEMA, true, &mut forms)?;
    let grammar = schema_grammar(&held.to_string())?;
    Ok(with_forms(grammar, &forms.grammars))
}
