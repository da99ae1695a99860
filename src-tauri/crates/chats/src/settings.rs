//! What a chat sets for its answers, and presets of it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use tierbar_core::{Code, Error, bad_request, sampling::Sampling};

const MAX_INSTRUCTIONS_CHARS: usize = 32_000;
const MAX_NAME_CHARS: usize = 60;

/// How tokens are chosen, and how many. What is absent is the tier's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(from = "SamplingFields")]
pub struct ChatSampling {
    #[serde(flatten)]
    pub values: Sampling,
    /// The most tokens of an answer, with its reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// As it is read. A flattened struct would ignore what it does not know.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SamplingFields {
    temperature: Option<f32>,
    top_k: Option<i32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repeat_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    max_tokens: Option<u32>,
}

impl From<SamplingFields> for ChatSampling {
    fn from(fields: SamplingFields) -> Self {
        let values = Sampling {
            temperature: fields.temperature,
            top_k: fields.top_k,
            top_p: fields.top_p,
            min_p: fields.min_p,
            repeat_penalty: fields.repeat_penalty,
            presence_penalty: fields.presence_penalty,
            frequency_penalty: fields.frequency_penalty,
        };
        let max_tokens = fields.max_tokens;
        Self { values, max_tokens }
    }
}

/// What each answer of a chat follows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct AnswerSettings {
    /// The system message of each request; empty for none.
    #[schema(required = true)]
    pub instructions: String,
    #[schema(required = true)]
    pub sampling: ChatSampling,
    /// Whether the model thinks before it answers, if it can; `null` for what the tier has.
    #[schema(required = true)]
    pub thinking: Option<bool>,
}

/// A named set of such settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Preset {
    pub name: String,
    /// It comes with Tierbar, and cannot be changed.
    pub built_in: bool,
    pub settings: AnswerSettings,
}

/// A change of a value that may be unset. In JSON: absent, `null` or the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Change<T> {
    #[default]
    Keep,
    Unset,
    Set(T),
}

impl<T> Change<T> {
    /// Returns the value after the change.
    pub fn apply(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Unset => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// A field that is there; one that is absent has the default, [`Change::Keep`].
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let value = Option::deserialize(json)?;
        Ok(value.map_or(Self::Unset, Self::Set))
    }
}

/// What the field's description has as its default.
impl<T: Serialize> Serialize for Change<T> {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(value) => value.serialize(json),
            Self::Keep | Self::Unset => json.serialize_none(),
        }
    }
}

impl ChatSampling {
    /// # Errors
    /// `BadRequest` for a value out of range.
    pub fn check(&self) -> Result<(), Error> {
        let refused = |message: String| Err(bad_request(message));
        if let Err((key, why)) = self.values.check() {
            return refused(format!("sampling.{key}: {why}"));
        }
        if self.max_tokens == Some(0) {
            return refused("sampling.max_tokens: 0 leaves no room for an answer".to_owned());
        }
        Ok(())
    }
}

impl AnswerSettings {
    /// # Errors
    /// `BadRequest` for a value out of range or instructions that are too long.
    pub fn check(&self) -> Result<(), Error> {
        self.sampling.check()?;
        let chars = self.instructions.chars().count();
        if chars > MAX_INSTRUCTIONS_CHARS {
            let message = format!(
                "the instructions have {chars} characters; at most {MAX_INSTRUCTIONS_CHARS} are kept"
            );
            return Err(bad_request(message));
        }
        Ok(())
    }

    /// Returns the fields of a request in OpenAI's form that ask for it, but for the instructions.
    pub fn options(&self) -> Map<String, Value> {
        // By its text, in which 0.7 stays 0.7: as a value it would have the digits of single precision.
        let text = serde_json::to_string(&self.sampling).unwrap_or_default();
        let mut options: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        if let Some(thinking) = self.thinking {
            options.insert("think".to_owned(), thinking.into());
        }
        options
    }
}

/// Returns the presets that come with Tierbar.
pub fn built_in() -> Vec<Preset> {
    let preset = |name: &str, instructions: &str, temperature: Option<f32>| Preset {
        name: name.to_owned(),
        built_in: true,
        settings: AnswerSettings {
            instructions: instructions.to_owned(),
            sampling: ChatSampling {
                values: Sampling {
                    temperature,
                    ..Sampling::default()
                },
                max_tokens: None,
            },
            thinking: None,
        },
    };
    vec![
        preset(
            "Brief",
            "Answer in as few sentences as the question needs, without an introduction or a summary.",
            None,
        ),
        preset(
            "Proofread",
            "Correct the spelling, grammar and style of each message. Reply with the corrected text alone, in its own language.",
            Some(0.2),
        ),
    ]
}

/// Checks the name of a preset that someone saves or removes, and returns it without the spaces around it.
///
/// # Errors
/// `BadRequest` for an empty or long name, `Conflict` for that of one that comes with Tierbar.
pub fn own_name(name: &str) -> Result<&str, Error> {
    let name = name.trim();
    let chars = name.chars().count();
    if chars == 0 || chars > MAX_NAME_CHARS {
        let message = format!("the name of a preset has 1 to {MAX_NAME_CHARS} characters");
        return Err(bad_request(message));
    }
    if name.chars().any(char::is_control) {
        return Err(bad_request("the name of a preset is one line"));
    }
    if built_in()
        .iter()
        .any(|preset| preset.name.eq_ignore_ascii_case(name))
    {
        let message = format!("the preset \"{name}\" comes with Tierbar and stays as it is");
        return Err(Error::new(Code::Conflict, message).hint("use another name"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_sampling_is_refused() {
        let read = |sampling: Value| serde_json::from_value::<ChatSampling>(sampling);
        let error = read(json!({"temprature": 3})).unwrap_err().to_string();
        assert!(error.contains("unknown field `temprature`"), "{error}");
        let all = json!({
            "temperature": 0.5, "top_k": 3, "top_p": 0.5, "min_p": 0.5, "repeat_penalty": 1.5, "presence_penalty": 0.5,
            "frequency_penalty": 0.5, "max_tokens": 9,
        });
        assert_eq!(
            serde_json::to_value(read(all.clone()).unwrap()).unwrap(),
            all
        );
    }

    #[test]
    fn a_presets_name_is_one_line_and_not_one_of_ours() {
        assert_eq!(own_name(" Mine ").unwrap(), "Mine");
        for (name, code) in [
            ("a\nb", Code::BadRequest),
            ("", Code::BadRequest),
            ("brief", Code::Conflict),
        ] {
            assert_eq!(own_name(name).unwrap_err().code, code, "{name:?}");
        }
    }

    #[test]
    fn settings_become_the_fields_of_a_request() {
        let read = json!({"sampling": {"temperature": 0.7, "max_tokens": 9}, "thinking": false});
        let settings: AnswerSettings = serde_json::from_value(read).unwrap();
        let options = Value::Object(settings.options());
        let wanted = json!({"temperature": 0.7, "max_tokens": 9, "think": false});
        assert_eq!(options, wanted);
        assert_eq!(AnswerSettings::default().options(), Map::new());
        let written = serde_json::to_string(&settings).unwrap();
        assert_eq!(
            serde_json::from_str::<AnswerSettings>(&written).unwrap(),
            settings
        );
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_name() {
        for (sampling, name) in [
            (json!({"temperature": 9}), "sampling.temperature"),
            (json!({"max_tokens": 0}), "sampling.max_tokens"),
        ] {
            let sampling: ChatSampling = serde_json::from_value(sampling).unwrap();
            let error = sampling.check().unwrap_err();
            assert!(error.message.starts_with(name), "{error}");
        }
        let long = AnswerSettings {
            instructions: "x".repeat(MAX_INSTRUCTIONS_CHARS + 1),
            ..AnswerSettings::default()
        };
        assert!(long.check().is_err());
    }

    #[test]
    fn a_change_tells_null_from_absent() {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Fields {
            thinking: Change<bool>,
        }
        let after = |json: Value| {
            let fields: Fields = serde_json::from_value(json).unwrap();
            fields.thinking.apply(Some(true))
        };
        assert_eq!(after(json!({})), Some(true));
        assert_eq!(after(json!({"thinking": null})), None);
        assert_eq!(after(json!({"thinking": false})), Some(false));
    }

    #[test]
    fn a_built_in_preset_is_valid_and_keeps_its_name() {
        for preset in built_in() {
            preset.settings.check().unwrap();
            assert_eq!(own_name(&preset.name).unwrap_err().code, Code::Conflict);
        }
        assert_eq!(own_name("  Mine ").unwrap(), "Mine");
        for wrong in ["  ", &"x".repeat(61)] {
            assert_eq!(own_name(wrong).unwrap_err().code, Code::BadRequest);
        }
    }
}
