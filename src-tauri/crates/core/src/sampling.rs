//! How tokens are chosen where a request does not say: the tier's values, else the file's, else those that the model's maker
//! publishes, else the engine's.

use crate::model::ModelAccount;
use serde::{Deserialize, Serialize};

/// Values that are set, with llama.cpp's meanings. Those left out are the engine's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Sampling {
    /// How freely tokens are chosen; 0: always the likeliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Choose among this many of the likeliest tokens; 0: among all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<i32>,
    /// Choose among the likeliest tokens that together have this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Choose among tokens with at least this part of the likeliest one's probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f32>,
    /// How much tokens that have come before are avoided; 1: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_penalty: Option<f32>,
    /// How much tokens that have come at all are avoided; 0: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f32>,
    /// How much tokens are avoided, by how often they have come; 0: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f32>,
}

// What is not a number is refused where it is read.
impl Eq for Sampling {}

/// A model's sampling by whether it thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct ModelSampling {
    pub answer: Sampling,
    pub thinking: Sampling,
}

impl Sampling {
    /// Returns these values, and `other`'s where there is none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            top_k: self.top_k.or(other.top_k),
            top_p: self.top_p.or(other.top_p),
            min_p: self.min_p.or(other.min_p),
            repeat_penalty: self.repeat_penalty.or(other.repeat_penalty),
            presence_penalty: self.presence_penalty.or(other.presence_penalty),
            frequency_penalty: self.frequency_penalty.or(other.frequency_penalty),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns it without the values that are out of range, and the key and the range of each of those.
    pub fn valid(mut self) -> (Self, Vec<(&'static str, String)>) {
        let mut wrong = Vec::new();
        for (key, value, least, most) in [
            ("temperature", &mut self.temperature, 0.0, 5.0),
            ("top_p", &mut self.top_p, 0.0, 1.0),
            ("min_p", &mut self.min_p, 0.0, 1.0),
            ("repeat_penalty", &mut self.repeat_penalty, 0.5, 2.0),
            ("presence_penalty", &mut self.presence_penalty, -2.0, 2.0),
            ("frequency_penalty", &mut self.frequency_penalty, -2.0, 2.0),
        ] {
            if let Some(number) = value.take_if(|number| !(least..=most).contains(number)) {
                wrong.push((key, format!("{number} is not between {least} and {most}")));
            }
        }
        let most = MOST_TOP_K;
        if let Some(top_k) = self.top_k.take_if(|top_k| !(0..=most).contains(top_k)) {
            wrong.push(("top_k", format!("{top_k} is not between 0 and {most}")));
        }
        (self, wrong)
    }

    /// # Errors
    /// The key of the first value that is out of range, and the range.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let (_, wrong) = self.valid();
        wrong.into_iter().next().map_or(Ok(()), Err)
    }

    const fn new(temperature: f32, top_k: i32, top_p: f32) -> Self {
        Self {
            temperature: Some(temperature),
            top_k: Some(top_k),
            top_p: Some(top_p),
            min_p: Some(0.0),
            repeat_penalty: None,
            presence_penalty: None,
            frequency_penalty: None,
        }
    }
}

const MOST_TOP_K: i32 = 1000;

impl ModelSampling {
    /// Returns a model's sampling in a tier that sets `own`.
    pub fn for_model(own: Sampling, model: &ModelAccount) -> Self {
        let maker = published(model);
        let with = |maker| own.or(model.sampling).or(maker);
        Self {
            answer: with(maker.answer),
            thinking: with(maker.thinking),
        }
    }
}

/// What makers publish in their model cards: of Gemma 3 and 4, Qwen3, Qwen3.5 and 3.6, Llama 3 and DeepSeek's R1 distilled models.
fn published(model: &ModelAccount) -> ModelSampling {
    let both = |sampling| ModelSampling {
        answer: sampling,
        thinking: sampling,
    };
    let name = model.name.as_deref().unwrap_or_default().to_lowercase();
    if name.contains("deepseek") && name.contains("r1") {
        return both(Sampling::new(0.6, 0, 0.95));
    }
    match model.architecture.as_str() {
        "gemma3" | "gemma3n" | "gemma4" => both(Sampling::new(1.0, 64, 0.95)),
        "qwen3" | "qwen3moe" => ModelSampling {
            answer: Sampling::new(0.7, 20, 0.8),
            thinking: Sampling::new(0.6, 20, 0.95),
        },
        "qwen35" | "qwen35moe" => {
            let varied = |sampling| Sampling {
                presence_penalty: Some(1.5),
                ..sampling
            };
            ModelSampling {
                answer: varied(Sampling::new(0.7, 20, 0.8)),
                thinking: varied(Sampling::new(1.0, 20, 0.95)),
            }
        }
        "llama" if name.contains("llama") => both(Sampling::new(0.6, 0, 0.9)),
        _ => ModelSampling::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warm(temperature: f32) -> Sampling {
        Sampling {
            temperature: Some(temperature),
            ..Sampling::default()
        }
    }

    #[test]
    fn the_tier_comes_first_then_the_file_then_the_maker() {
        let model = ModelAccount {
            architecture: "qwen35".to_owned(),
            sampling: Sampling {
                top_k: Some(7),
                ..warm(0.3)
            },
            ..crate::fit::tests::accounts::smollm2_135m()
        };
        let ModelSampling { answer, thinking } = ModelSampling::for_model(warm(0.1), &model);
        assert_eq!((answer.temperature, answer.top_k), (Some(0.1), Some(7)));
        assert_eq!((answer.top_p, thinking.top_p), (Some(0.8), Some(0.95)));
        assert_eq!(thinking.presence_penalty, Some(1.5));
        let unknown = crate::fit::tests::accounts::smollm2_135m();
        assert_eq!(
            ModelSampling::for_model(Sampling::default(), &unknown),
            ModelSampling::default()
        );
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        assert_eq!(warm(2.0).check(), Ok(()));
        for wrong in [warm(f32::NAN), warm(-1.0), warm(f32::INFINITY)] {
            assert_eq!(wrong.check().unwrap_err().0, "temperature");
        }
        let wrong = Sampling {
            top_k: Some(-1),
            ..Sampling::default()
        };
        assert_eq!(wrong.check().unwrap_err().0, "top_k");
        let some = Sampling {
            top_p: Some(0.9),
            min_p: Some(7.0),
            ..wrong
        };
        let (valid, wrong) = some.valid();
        assert_eq!(
            valid,
            Sampling {
                top_p: Some(0.9),
                ..Sampling::default()
            }
        );
        let keys: Vec<_> = wrong.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["min_p", "top_k"]);
    }
}
