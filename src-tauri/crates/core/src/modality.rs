//! What a model takes: text, images, sound.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A kind of content in a message, as OpenAI and the hub name it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Modality {
    Text,
    Image,
    Audio,
}

impl Modality {
    /// Returns the name in a sentence.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "images",
            Self::Audio => "sound",
        }
    }

    /// Lists them in a sentence: `text, images and sound`.
    pub fn list(modalities: &[Self]) -> String {
        let names: Vec<_> = modalities.iter().map(|one| one.plural()).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => names.concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modalities_are_listed_as_in_a_sentence() {
        use Modality::{Audio, Image, Text};
        for (modalities, listed) in [
            (&[][..], ""),
            (&[Text], "text"),
            (&[Image, Audio], "images and sound"),
            (&[Text, Image, Audio], "text, images and sound"),
        ] {
            assert_eq!(Modality::list(modalities), listed);
        }
    }
}
