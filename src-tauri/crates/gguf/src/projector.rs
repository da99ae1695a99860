//! Media projectors ("mmproj" files): what turns images and sound into a model's embeddings.
//!
//! Keys: llama.cpp's `tools/mtmd/clip-impl.h`.

use crate::{
    encoder::Encoder,
    fault::{Fault, invalid, unsupported},
    header::{Header, HeaderValue},
    keys::HeaderKeys,
    quant,
};
use tierbar_core::{Modality, ModelAccount, budget::MediaProjector};

/// The contents of a projector's header. All sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectorAccount {
    /// `general.name`, if the file has one.
    pub name: Option<String>,
    /// The file's quantisation, such as `BF16`.
    pub quant: String,
    /// All tensors.
    pub bytes: u64,
    /// The width of its embeddings, which must be the model's; `None` if the header does not give it.
    pub projection_dim: Option<u32>,
    /// What it sees with.
    pub vision: Option<Encoder>,
    /// The audio encoder.
    pub audio: Option<Encoder>,
}

impl ProjectorAccount {
    /// Returns whether the model accepts its embeddings, according to the headers: llama.cpp refuses
    /// another width.
    pub fn fits(&self, model: &ModelAccount) -> bool {
        self.projection_dim
            .is_none_or(|width| width == model.embedding)
    }

    /// Returns what a model takes with it.
    pub fn modalities(&self) -> Vec<Modality> {
        let image = self.vision.as_ref().map(|_| Modality::Image);
        let audio = self.audio.as_ref().map(|_| Modality::Audio);
        let all = [Some(Modality::Text), image, audio];
        all.into_iter().flatten().collect()
    }
}

impl MediaProjector for ProjectorAccount {
    fn load_bytes(&self, context: u32, batch: u32) -> u64 {
        Encoder::load_bytes(self.bytes, [&self.vision, &self.audio], context, batch)
    }
}

pub(crate) fn account_projector(header: &Header) -> Result<ProjectorAccount, Fault> {
    let keys = HeaderKeys::new(&header.pairs)?;
    if keys.architecture != "clip" {
        return unsupported(
            format!("it is a {} model, not a media projector", keys.architecture),
            "choose the file with \"mmproj\" in its name",
        );
    }
    let [vision, audio] = ["has_vision_encoder", "has_audio_encoder"]
        .map(|key| keys.own(key) == Some(&HeaderValue::Bool(true)));
    if !vision && !audio {
        return invalid("it has an encoder neither for images nor for sound");
    }
    let mut projection_dim = None;
    for (encoder, key) in [
        (vision, "vision.projection_dim"),
        (audio, "audio.projection_dim"),
    ] {
        // 0 stands in some older files for "see the tensors".
        let Some(width) = keys.number(key)?.filter(|&width| encoder && width > 0) else {
            continue;
        };
        if projection_dim.is_some_and(|other| other != width) {
            return invalid("its encoders for images and for sound are of different widths");
        }
        projection_dim = Some(width);
    }
    // Files of the first LLaVA converter give the width of CLIP's own projection, which is not used.
    if keys.own("has_llava_projector") == Some(&HeaderValue::Bool(true)) {
        projection_dim = header
            .tensors
            .iter()
            .find(|tensor| tensor.name == "mm.2.bias")
            .and_then(|bias| u32::try_from(bias.elements).ok());
    }
    let encoder = |has: bool, side| {
        has.then(|| Encoder::from_header(header, &keys, side))
            .transpose()
    };
    Ok(ProjectorAccount {
        name: keys.name(),
        quant: quant::quant_name(&keys, header).to_owned(),
        bytes: header.tensors.iter().map(|tensor| tensor.bytes).sum(),
        projection_dim,
        vision: encoder(vision, "vision")?,
        audio: encoder(audio, "audio")?,
    })
}
