//! What requests for chats and completions share: how long an answer may be, how tokens are chosen, and the form of the answer.

pub(super) mod form;
pub(super) mod sampling;

use crate::{bad, llama::Token};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use tierbar_core::Error;
use tierbar_grammar::AnswerForm;
use tierbar_request_fields::wrong_field;

const MOST_ANSWERS: u32 = 16;
/// OpenAI allows 20, llama-server as many as there are tokens.
const MOST_ALTERNATIVES: usize = 100;
const MOST_STOPS: usize = 64;
const LONGEST_STOPS: usize = 16 << 10;
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
    pub(crate) prompt_logprobs: Option<usize>,
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
    #[serde(deserialize_with = "deserialize_biases")]
    logit_bias: Vec<(String, f32)>,
    stop: Option<Stop>,
    ignore_eos: Option<bool>,
    cache_prompt: Option<bool>,
    #[serde(flatten)]
    pub(super) form: AnswerForm,
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
pub(crate) fn describe_wrong_option(body: &[u8]) -> Option<String> {
    wrong_field::describe::<Options>(body).or_else(|| wrong_field::describe::<AnswerForm>(body))
}

/// As OpenAI has it, an object of token ids and numbers, or as llama-server has it, a list of pairs of them, in which `false`
/// forbids the token.
fn deserialize_biases<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, f32)>, D::Error> {
    let token = |token: &Value| match token {
        Value::Number(id) => Some(id.to_string()),
        Value::String(id) => Some(id.clone()),
        _ => None,
    };
    let bias = |bias: &Value| match bias {
        Value::Bool(false) => Some(f32::NEG_INFINITY),
        bias => bias.as_f64().map(|bias| bias as f32),
    };
    let biases = match Value::deserialize(from)? {
        Value::Null => Some(Vec::new()),
        Value::Object(named) => named
            .into_iter()
            .map(|(id, value)| Some((id, bias(&value)?)))
            .collect(),
        Value::Array(pairs) => {
            let pair = |pair: &Value| match &**pair.as_array()? {
                [id, value] => Some((token(id)?, bias(value)?)),
                _ => None,
            };
            pairs.iter().map(pair).collect()
        }
        _ => None,
    };
    biases.ok_or_else(|| {
        D::Error::custom(
            "`logit_bias` is neither an object of token ids and numbers nor a list of such pairs",
        )
    })
}

/// Checks that a field has tokens of the vocabulary alone.
pub(crate) fn check_tokens(field: &str, tokens: &[Token], vocabulary: usize) -> Result<(), Error> {
    let known = |&token: &Token| usize::try_from(token).is_ok_and(|id| id < vocabulary);
    match tokens.iter().find(|token| !known(token)) {
        None => Ok(()),
        Some(token) => Err(bad(format!(
            "`{field}` contains {token}, which is not a token of this model"
        ))),
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

    pub(crate) fn min_tokens(&self) -> Result<usize, Error> {
        let min = self.min_tokens.unwrap_or(0);
        // Once its form is complete, no token but the end fits.
        if min > 0 && self.form.rule()?.is_some() {
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
        check_tokens("stop_token_ids", &stops, vocabulary)?;
        Ok(stops)
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
}
