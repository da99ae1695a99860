//! What a set-up proposes: a model for each tier of this machine, with the reasons and the costs.

use crate::{budget::gib, fit::Verdict, tier::TierId, units::file_size};
use serde::{Deserialize, Serialize};

/// The machine, a model for each tier, and the room that they need. All sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SetupPlan {
    pub machine: SetupMachine,
    /// In order of use, which is the order of the downloads.
    pub tiers: Vec<TierPlan>,
    /// What all of it still has to download.
    pub download_bytes: u64,
    /// The folder of the models.
    pub models_dir: String,
    /// What that folder's disk has room for, beside what must stay free; `null` if that is unknown.
    #[schema(required = true)]
    pub room_bytes: Option<u64>,
    /// What should be known, each with what to do.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SetupMachine {
    pub ram_bytes: u64,
    /// What models may use of it.
    pub budget_bytes: u64,
    /// What other programs use now; `null` for a machine that is only given by its memory.
    #[schema(required = true)]
    pub others_bytes: Option<u64>,
    /// The bytes that may be placed on the GPU; `null` without one that shares the memory.
    #[schema(required = true)]
    pub gpu_bytes: Option<u64>,
    #[schema(required = true)]
    pub memory_bytes_per_second: Option<u64>,
    /// How fast the disk with the models is read.
    #[schema(required = true)]
    pub disk_bytes_per_second: Option<u64>,
    #[schema(required = true)]
    pub disk_free_bytes: Option<u64>,
}

/// The model proposed for a tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TierPlan {
    pub tier: TierId,
    /// The name for people, such as `Gemma 4 E2B`.
    pub name: String,
    /// What it is good for, in one sentence.
    pub about: String,
    /// The reference to download it by.
    pub reference: String,
    pub quant: String,
    /// With its projector for images and sound, if the catalog lists one.
    pub size_bytes: u64,
    /// What still has to be downloaded: 0 if it is installed.
    pub download_bytes: u64,
    /// Why this model and this quant.
    pub reason: String,
    pub fit: Verdict,
    /// The installed model, if it is here.
    #[schema(required = true)]
    pub installed: Option<String>,
    /// Whether the tier has this model already.
    pub in_use: bool,
    /// The model of the user's choice that the tier has now, if it is another one.
    #[schema(required = true)]
    pub replaces: Option<String>,
}

/// Returns the settings of a tier that gets a model by a set-up: what its plan was made for, without what was set for another model.
#[must_use]
pub fn settings_for(model: &str) -> serde_json::Value {
    serde_json::json!({
        "model": model,
        "context": "auto",
        "kv_cache": "auto",
        "gpu_layers": null,
        "experts_used": null,
        "draft_model": "",
    })
}

impl SetupPlan {
    /// Returns why the models folder cannot take the downloads of these tiers, and what to do.
    pub fn lacks_room<'a>(&self, tiers: impl IntoIterator<Item = &'a TierPlan>) -> Option<String> {
        let wanted: u64 = tiers.into_iter().map(|tier| tier.download_bytes).sum();
        let room = self.room_bytes.filter(|room| wanted > *room)?;
        Some(format!(
            "The models need {}, and there is room for {} where they go. Free up space, leave a tier out, or put a model on another disk.",
            file_size(wanted),
            file_size(room)
        ))
    }

    /// Adds what other programs use now, and a note if it is in the way of a model.
    pub fn count_others(&mut self, bytes: u64) {
        self.machine.others_bytes = Some(bytes);
        let left = self.machine.ram_bytes.saturating_sub(bytes);
        let large = self.tiers.iter().filter(|tier| tier.fit.total_bytes > left);
        let names: Vec<_> = large.map(|tier| tier.name.as_str()).collect();
        if !names.is_empty() {
            self.notes.push(format!(
                "Other programs use {} now, so {} would not fit beside them. Quit some before you use it.",
                gib(bytes),
                names.join(" and ")
            ));
        }
    }
}
