//! A small model's one-word grade of a request, and whether to trust it.
//!
//! A grammar restricts the answer to one of three words, and the probabilities of its first token show how sure the model
//! is. Small models prefer one word whatever they read, so each word is weighted by its probability over [`PROBES`], whose
//! levels are known; a model that cannot sort those is not used.

use super::Level;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The characters at the start and at the end of a longer text that the model reads.
const HEAD: usize = 600;
const TAIL: usize = 300;
/// Requested token probabilities: the words are seldom a small model's first choice.
const ALTERNATIVES: u32 = 60;
/// Less than this between the first word and the second is a guess.
const MARGIN: f64 = 0.25;

/// Texts of known levels, none of them of the evaluation set.
pub const PROBES: [(&str, Level); 12] = [
    ("hello there", Level::Simple),
    ("What colour is the sky?", Level::Simple),
    (
        "Is this message angry or calm? \"Leave me alone!\"",
        Level::Simple,
    ),
    ("Translate \"dog\" to French.", Level::Simple),
    (
        "Explain how a bicycle stays upright, in a few sentences.",
        Level::Medium,
    ),
    (
        "Write a polite email that declines an invitation to a wedding.",
        Level::Medium,
    ),
    (
        "Write a function in Python that counts the vowels of a text.",
        Level::Medium,
    ),
    (
        "Describe the main differences between cats and dogs as pets.",
        Level::Medium,
    ),
    (
        "Prove by induction that the sum of the first n odd numbers is n squared.",
        Level::Hard,
    ),
    (
        "Find the bug: two threads add to one counter without a lock and the total is wrong. Show a correct and a fast version.",
        Level::Hard,
    ),
    (
        "Seat eight guests at a round table so that no couple sits together and Ann faces Bob. How many ways are there?",
        Level::Hard,
    ),
    (
        "Design a database for a hospital with 40 wards, with audit trails, failover and a plan for moving the old data.",
        Level::Hard,
    ),
];
/// By guessing, this many of the twelve are right once in 250 times.
const ENOUGH_RIGHT: usize = 9;

/// Returns the question to a model, as the body of a chat completion.
pub fn question(text: &str) -> Value {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let content = format!(
        "Say how hard a request is to answer well, in one word.\n\
         simple: greetings, thanks, common facts, sorting or picking from a short text, one sentence translated.\n\
         medium: explaining, rewriting, summarizing, letters, ideas, a short function.\n\
         hard: proofs, puzzles, sums in words, debugging, design, plans with conditions, several steps.\n\n\
         Request: thank you!\nWord: simple\n\n\
         Request: Explain what inflation is.\nWord: medium\n\n\
         Request: Prove that the square root of 3 is irrational.\nWord: hard\n\n\
         Request: {}\nWord:",
        excerpt(&line, HEAD, TAIL, " ... ")
    );
    json!({
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 6,
        "temperature": 0,
        "grammar": "root ::= \"simple\" | \"medium\" | \"hard\"",
        "logprobs": true,
        "top_logprobs": ALTERNATIVES,
        "cache_prompt": true,
        "chat_template_kwargs": {"enable_thinking": false},
    })
}

/// Returns the text without its middle if it is long: so many characters at its start and at its end, and a mark between them.
pub fn excerpt(text: &str, head: usize, tail: usize, mark: &str) -> String {
    let count = text.chars().count();
    if count <= head + tail {
        return text.to_owned();
    }
    let tail = text.chars().skip(count - tail);
    let head = text.chars().take(head);
    head.chain(mark.chars()).chain(tail).collect()
}

/// The probability that a model gives each level, in the order of [`Level::ALL`]; they add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Opinion([f64; 3]);

impl Opinion {
    /// Reads the answer to [`question`]: by the probabilities of its first token, or by its word if the server returns
    /// none.
    pub fn from_answer(answer: &Value) -> Option<Self> {
        let choice = &answer["choices"][0];
        let word = choice["message"]["content"].as_str()?.trim().to_lowercase();
        let first = &choice["logprobs"]["content"][0]["top_logprobs"];
        let mut weights = [0.0; 3];
        for token in first.as_array().map_or(&[][..], Vec::as_slice) {
            let text = token["token"].as_str().unwrap_or_default().trim();
            let probability = token["logprob"].as_f64().map_or(0.0, f64::exp);
            let text = text.to_lowercase();
            let begun = Level::ALL
                .iter()
                .position(|level| level.word().starts_with(&text));
            if let Some(place) = begun.filter(|_| !text.is_empty() && probability.is_finite()) {
                weights[place] += probability;
            }
        }
        Self::from_weights(weights).or_else(|| {
            let place = Level::ALL
                .iter()
                .position(|level| word.starts_with(level.word()))?;
            let mut weights = [0.0; 3];
            weights[place] = 1.0;
            Self::from_weights(weights)
        })
    }

    fn from_weights(weights: [f64; 3]) -> Option<Self> {
        let sum: f64 = weights.iter().sum();
        (sum > 1e-9 && sum.is_finite()).then(|| Self(weights.map(|weight| weight / sum)))
    }

    /// Returns the most probable level, and its margin.
    pub fn first(&self) -> (Level, f64) {
        let mut order = Level::ALL;
        order.sort_by(|one, other| self.0[other.place()].total_cmp(&self.0[one.place()]));
        let [first, second, _] = order;
        (first, self.0[first.place()] - self.0[second.place()])
    }

    pub fn probabilities(&self) -> [f64; 3] {
        self.0
    }
}

/// How a model did on [`PROBES`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Exam {
    /// The mean probability of each word over all probes.
    usual: Opinion,
    pub right: usize,
}

impl Exam {
    /// Grades a model by its opinions of all probes, in their order.
    pub fn from_opinions(opinions: &[Opinion; PROBES.len()]) -> Self {
        // A word of nearly no probability must not dominate when it appears once.
        const FLOOR: f64 = 0.02;
        let mut sums = [FLOOR * 12.0; 3];
        for Opinion(one) in opinions {
            for (sum, probability) in sums.iter_mut().zip(one) {
                *sum += probability;
            }
        }
        let usual = Opinion::from_weights(sums).unwrap_or(Opinion([1.0 / 3.0; 3]));
        let unmarked = Self { usual, right: 0 };
        let right = opinions
            .iter()
            .zip(PROBES)
            .filter(|(opinion, (_, level))| unmarked.weigh(**opinion).first().0 == *level);
        Self {
            usual,
            right: right.count(),
        }
    }

    /// Returns the opinion, corrected for the model's bias.
    pub fn weigh(&self, opinion: Opinion) -> Opinion {
        let mut weights = opinion.0;
        for (weight, usual) in weights.iter_mut().zip(self.usual.0) {
            *weight /= usual;
        }
        Opinion::from_weights(weights).unwrap_or(opinion)
    }

    /// Returns whether the model sorts requests well enough.
    pub fn is_passed(&self) -> bool {
        self.right >= ENOUGH_RIGHT
    }

    /// Returns the level, if the model is trusted and sure enough.
    pub fn believed(&self, opinion: Opinion) -> Option<Level> {
        let (level, margin) = self.weigh(opinion).first();
        (self.is_passed() && margin >= MARGIN).then_some(level)
    }
}
