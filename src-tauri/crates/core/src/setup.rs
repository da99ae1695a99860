//! What a set-up proposes: a model for each tier of this machine, with the reasons and the costs.

use crate::{
    budget::gib,
    fit::{Grounds, Verdict},
    tier::TierId,
    units::file_size,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file of the model that comes with Tierbar, to try things with.
pub const STARTER: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Returns whether a model, by its id, file name or path, is the starter or another quant of it.
pub fn is_starter(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.to_ascii_lowercase().starts_with("smollm2-135m")
}

/// What each tier is asked at the end of a set-up: short, and any model can answer it.
pub const QUESTION: &str = "In one sentence: what can you help me with?";
/// Enough for one sentence.
pub const ANSWER_TOKENS: u32 = 48;

/// How a tier answers the question at the end of a set-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TierAnswer {
    pub tier: TierId,
    pub state: AnswerState,
    /// Who answered; `null` before.
    pub model: Option<String>,
    pub answer: String,
    /// From the question to the end of the answer, with loading the model.
    pub seconds: Option<f64>,
    pub tokens_per_second: Option<f64>,
    /// Why it did not answer, and what to do.
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnswerState {
    /// Waits for the tiers before it.
    Waiting,
    /// Loads its model, or answers.
    Asking,
    Answered,
    Failed,
}

impl TierAnswer {
    /// Returns the entry of a tier that has not been asked yet.
    pub fn waiting(tier: TierId) -> Self {
        Self {
            tier,
            state: AnswerState::Waiting,
            model: None,
            answer: String::new(),
            seconds: None,
            tokens_per_second: None,
            error: None,
        }
    }

    /// Returns whether the tier has answered, or will not.
    pub fn is_over(&self) -> bool {
        matches!(self.state, AnswerState::Answered | AnswerState::Failed)
    }
}

/// A folder that a model can be downloaded to, and the room on its disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FolderRoom {
    /// The full path.
    pub path: String,
    /// Which disk it is on: folders on one disk share its room.
    pub disk: String,
    pub free_bytes: u64,
    /// What downloads may take of that, beside what must stay free.
    pub room_bytes: u64,
}

/// The machine, a model for each tier, and the room that they need. All sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SetupPlan {
    pub machine: SetupMachine,
    /// In order of use, which is the order of the downloads.
    pub tiers: Vec<TierPlan>,
    /// The tier whose model to begin with, if one is lacking: the one for most questions, unless its model is slow here.
    pub first: Option<TierId>,
    /// What all of it still has to download.
    pub download_bytes: u64,
    /// The folder of the models.
    pub models_dir: String,
    /// The room there; `null` if that is unknown, or for another machine.
    pub room: Option<FolderRoom>,
    /// What should be known, each with what to do.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SetupMachine {
    pub ram_bytes: u64,
    /// What models may use of it.
    pub budget_bytes: u64,
    /// What other programs use now; `null` for a machine that is only given by its memory.
    pub others_bytes: Option<u64>,
    /// The bytes that may be placed on the GPU; `null` without one that shares the memory.
    pub gpu_bytes: Option<u64>,
    pub memory_bytes_per_second: Option<u64>,
    /// How fast the disk with the models is read.
    pub disk_bytes_per_second: Option<u64>,
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
    /// What `reason` says, with the figures, for other languages.
    pub grounds: Option<Grounds>,
    pub fit: Verdict,
    /// The installed model, if it is here.
    pub installed: Option<String>,
    /// Whether the tier has this model already.
    pub in_use: bool,
    /// The model of the user's choice that the tier has now, if it is another one.
    pub replaces: Option<String>,
}

/// Returns the settings of a tier that gets another model: what the model's verdict was computed for, without what was set for the
/// model before it. The tier's profile stays, since it is about its use.
pub fn settings_for(model: &str) -> serde_json::Value {
    serde_json::json!({
        "model": model,
        "context": "auto",
        "kv_cache": "auto",
        "gpu_layers": null,
        "experts_used": null,
        "draft_model": "",
        "batch": null,
        "paging": null,
        "sampling": null,
        "thinking": null,
    })
}

/// A model that is expected to be slower than one reads, in tokens per second.
const SLOW: f64 = 5.0;

impl TierPlan {
    /// Tokens per second; `None` if nothing is known.
    fn speed(&self) -> Option<f64> {
        let speed = self.fit.speed?;
        Some(speed.measured.unwrap_or(speed.high))
    }

    fn is_slow(&self) -> bool {
        self.speed().is_some_and(|speed| speed < SLOW)
    }
}

/// Returns the model to begin with, of those that tiers lack: the one for most questions, unless it is slow on this machine. Then
/// another that is not, or else the fastest.
pub fn first_model(tiers: &[TierPlan]) -> Option<&TierPlan> {
    let lacked: Vec<_> = tiers
        .iter()
        .filter(|tier| tier.replaces.is_none() && !tier.in_use)
        .collect();
    let usual = lacked
        .iter()
        .find(|tier| tier.tier.as_str() == "primary")
        .or(lacked.first())?;
    let quick = || lacked.iter().find(|tier| !tier.is_slow());
    let fastest = || {
        let speed = |tier: &TierPlan| tier.speed().unwrap_or(0.0);
        let by_speed = |one: &&&TierPlan, other: &&&TierPlan| speed(one).total_cmp(&speed(other));
        lacked.iter().max_by(by_speed)
    };
    let first = Some(usual).filter(|tier| !tier.is_slow());
    first.or_else(quick).or_else(fastest).copied()
}

impl SetupPlan {
    /// Returns why a disk cannot take the downloads of these tiers, and what to do. `placed` are the tiers whose models go to another
    /// folder than the models folder.
    pub fn lacks_room(&self, placed: &BTreeMap<TierId, FolderRoom>) -> Option<String> {
        let mut wanted: BTreeMap<&str, (u64, &FolderRoom)> = BTreeMap::new();
        for tier in &self.tiers {
            if let Some(room) = placed.get(&tier.tier).or(self.room.as_ref()) {
                wanted.entry(&room.disk).or_insert((0, room)).0 += tier.download_bytes;
            }
        }
        let (bytes, room) = wanted
            .into_values()
            .find(|(bytes, room)| *bytes > room.room_bytes)?;
        Some(format!(
            "The models need {}, and there is room for {} in {}. Free up space, leave a tier out, or put a model on another disk.",
            file_size(bytes),
            file_size(room.room_bytes),
            room.path
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{ContextChoice, Machine, tests::verdict};

    #[test]
    fn the_starter_is_known_by_id_file_and_path() {
        for name in [
            STARTER,
            "SmolLM2-135M-Instruct.Q4_1",
            "/m/smollm2-135m.gguf",
        ] {
            assert!(is_starter(name), "{name}");
        }
        for name in ["", "SmolLM2-1.7B", "/smollm2-135m/gemma.gguf"] {
            assert!(!is_starter(name), "{name}");
        }
    }

    fn room(disk: &str, bytes: u64) -> FolderRoom {
        FolderRoom {
            path: format!("/{disk}"),
            disk: disk.to_owned(),
            free_bytes: bytes,
            room_bytes: bytes,
        }
    }

    fn plan(sizes: &[(&str, u64)]) -> SetupPlan {
        let machine = SetupMachine {
            ram_bytes: 0,
            budget_bytes: 0,
            others_bytes: None,
            gpu_bytes: None,
            memory_bytes_per_second: None,
            disk_bytes_per_second: None,
            disk_free_bytes: None,
        };
        let model = crate::fit::tests::accounts::smollm2_135m();
        let mac = Machine::mac(16 << 30);
        let fit = verdict(&model, ContextChoice::default(), &mac, &[]);
        let tier = |(tier, bytes): &(&str, u64)| TierPlan {
            tier: TierId::new(*tier).unwrap(),
            name: String::new(),
            about: String::new(),
            reference: String::new(),
            quant: String::new(),
            size_bytes: *bytes,
            download_bytes: *bytes,
            reason: String::new(),
            grounds: None,
            fit: fit.clone(),
            installed: None,
            in_use: false,
            replaces: None,
        };
        SetupPlan {
            machine,
            tiers: sizes.iter().map(tier).collect(),
            first: None,
            download_bytes: 0,
            models_dir: "/inner".to_owned(),
            room: Some(room("inner", 10)),
            notes: Vec::new(),
        }
    }

    #[test]
    fn each_disk_must_have_room_for_what_goes_there() {
        let plan = plan(&[("fast", 4), ("primary", 5), ("heavy", 9)]);
        let placed = |tier: &str, room| BTreeMap::from([(TierId::new(tier).unwrap(), room)]);
        assert!(
            plan.lacks_room(&BTreeMap::new())
                .unwrap()
                .contains("/inner")
        );
        assert_eq!(plan.lacks_room(&placed("heavy", room("outer", 9))), None);
        let lack = plan.lacks_room(&placed("heavy", room("outer", 8))).unwrap();
        assert!(
            lack.contains("need 9 B") && lack.contains("8 B in /outer"),
            "{lack}"
        );
        // Another folder of the same disk gains nothing.
        assert!(
            plan.lacks_room(&placed("heavy", room("inner", 10)))
                .is_some()
        );
    }

    #[test]
    fn the_first_model_is_the_usual_one_unless_it_is_slow() {
        let first = |speeds: [Option<f64>; 3], change: &dyn Fn(&mut [TierPlan])| {
            let mut tiers = plan(&[("fast", 1), ("primary", 2), ("heavy", 3)]).tiers;
            for (tier, speed) in tiers.iter_mut().zip(speeds) {
                tier.fit.speed = speed.map(|high| crate::fit::SpeedEstimate {
                    low: high / 2.0,
                    high,
                    active_bytes: 1,
                    paged_bytes: 0,
                    measured: None,
                    error: None,
                });
            }
            change(&mut tiers);
            first_model(&tiers).map(|tier| tier.tier.to_string())
        };
        let as_is = |_: &mut [TierPlan]| {};
        for (speeds, name) in [
            ([None, None, None], "primary"),
            ([Some(40.0), Some(20.0), Some(6.0)], "primary"),
            ([Some(9.0), Some(3.0), Some(1.0)], "fast"),
            ([Some(4.0), Some(3.0), Some(1.0)], "fast"),
            ([Some(3.0), Some(4.0), Some(1.0)], "primary"),
        ] {
            assert_eq!(first(speeds, &as_is).as_deref(), Some(name), "{speeds:?}");
        }
        let none = [None, None, None];
        let in_use = |tiers: &mut [TierPlan]| tiers[1].in_use = true;
        assert_eq!(first(none, &in_use).as_deref(), Some("fast"));
        let all = |tiers: &mut [TierPlan]| tiers.iter_mut().for_each(|tier| tier.in_use = true);
        assert_eq!(first(none, &all), None);
    }
}
