//! Which models this machine should have, and what they cost.

use super::{
    local::writable_folder,
    offers::{Offers, another_machine, is_installed},
};
use crate::volume::Volume;
use std::path::Path;
use tierbar_core::{
    Error, TierId,
    setup::{FolderRoom, SetupMachine, SetupPlan, TierPlan, first_model, is_starter},
};
use tierbar_fetch::blocking;
use tierbar_library::{
    model_id,
    setup::{TierProposal, propose},
};

impl Offers {
    /// Proposes a model for each tier, of this machine or of a Mac with as much RAM. Needs no network.
    pub(crate) async fn plan_setup(&self, ram: Option<String>) -> Result<SetupPlan, Error> {
        let another = ram.as_deref().map(another_machine).transpose()?;
        let entries = self.local.readable().await;
        let machine = match another {
            Some(machine) => machine,
            None => self.local.machine_for(&entries).await,
        };
        let folder = self.local.config.models.library().models_dir().to_owned();
        let config = self.local.config.models.config();
        let catalog = self.list.catalog();
        let tiers_by_path = self.local.tiers_by_path().await;
        let downloads = self.local.config.queue.watch().borrow().clone();
        let of_tier = |proposed: TierProposal<'_>| {
            let tier = TierId::new(proposed.tier).ok()?;
            let reference = proposed.entry.reference(proposed.quant);
            let mut candidates = entries.iter().filter(|_| another.is_none());
            let (id, size) = (model_id(&proposed.quant.file), proposed.quant.size_bytes);
            let entry = candidates.find(|entry| is_installed(entry, &reference, &id, size));
            let in_use = entry
                .and_then(|entry| tiers_by_path.get(&entry.path))
                .is_some_and(|tiers| tiers.contains(&tier));
            let has = config.tiers.get(&tier).map(|tier| tier.model.trim());
            let replaces = has
                .filter(|model| another.is_none() && !in_use && !model.is_empty())
                .filter(|model| !is_starter(model));
            let projector = proposed.entry.projector.as_ref();
            let size_bytes =
                size.unwrap_or(0) + projector.map_or(0, |projector| projector.size_bytes);
            let arrived = downloads
                .iter()
                .find(|download| download.reference == reference)
                .map_or(0, |download| download.received_bytes);
            Some(TierPlan {
                name: proposed.entry.name.clone(),
                about: proposed.entry.about.clone(),
                quant: proposed.quant.quant.clone(),
                size_bytes,
                download_bytes: match entry {
                    Some(_) => 0,
                    None => size_bytes.saturating_sub(arrived),
                },
                reason: proposed.reason,
                grounds: proposed.grounds,
                fit: self.local.with_measured(proposed.fit, &id),
                installed: entry.map(|entry| entry.id.to_string()),
                in_use,
                replaces: replaces.map(str::to_owned),
                reference,
                tier,
            })
        };
        // Of a tier that is removed, or that a server answers for, there is nothing to choose.
        let takes = |tier: &TierPlan| {
            let known = config.tiers.get(&tier.tier);
            another.is_some() || known.is_some_and(|tier| tier.foreign_model().is_none())
        };
        let tiers: Vec<_> = propose(&catalog, &machine)
            .into_iter()
            .filter_map(of_tier)
            .filter(takes)
            .collect();
        let (models_dir, is_here) = (folder.display().to_string(), another.is_none());
        let look = move || is_here.then(|| room_of(&folder)).transpose();
        let room = blocking("looking for room", look).await.ok().flatten();
        Ok(SetupPlan {
            machine: SetupMachine {
                ram_bytes: machine.ram_bytes,
                budget_bytes: machine.budget().total_bytes,
                others_bytes: None,
                gpu_bytes: machine.gpu_limit,
                memory_bytes_per_second: machine.memory_bandwidth,
                disk_bytes_per_second: machine.disk_bandwidth,
                disk_free_bytes: room.as_ref().map(|room| room.free_bytes),
            },
            download_bytes: tiers.iter().map(|tier| tier.download_bytes).sum(),
            first: first_model(&tiers).map(|first| first.tier.clone()),
            tiers,
            models_dir,
            room,
            notes: Vec::new(),
        })
    }
}

/// Returns a folder of the user's for downloads, with the room on its disk.
///
/// # Errors
/// `BadRequest` for what is not a folder that can be written; `Storage`.
pub(super) async fn folder_room(path: String) -> Result<FolderRoom, Error> {
    blocking("looking for room", move || {
        room_of(&writable_folder(&path)?)
    })
    .await
}

fn room_of(folder: &Path) -> Result<FolderRoom, Error> {
    Volume::of(folder)?.room(folder)
}
