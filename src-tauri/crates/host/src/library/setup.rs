//! Which models this machine should have, and what they cost.

use super::{
    local::Measure,
    offers::{Offers, another_machine},
};
use crate::volume::Volume;
use tierbar_core::{
    Error, TierId,
    fit::Machine,
    setup::{SetupMachine, SetupPlan, TierPlan},
    units::file_size,
    volume,
};
use tierbar_library::{
    Entry, model_id,
    setup::{Proposed, propose},
};

impl Offers {
    /// Proposes a model for each tier, of this machine or of a Mac with as much RAM. Needs no network.
    pub(crate) async fn plan_setup(&self, ram: Option<String>) -> Result<SetupPlan, Error> {
        let another = ram.as_deref().map(another_machine).transpose()?;
        let entries = self.readable().await;
        let machine = match another {
            Some(machine) => machine,
            None => self.local.machine_for(&entries, Measure::First).await,
        };
        let folder = self.local.models.library().models_dir().to_owned();
        let config = self.local.models.config();
        let catalog = self.list.catalog();
        let of_tier = |proposed: Proposed<'_>| {
            let id = model_id(&proposed.quant.file);
            let tier = TierId::new(proposed.tier).ok()?;
            let here = another.is_none();
            let installed = entries
                .iter()
                .find(|entry| here && is_installed(entry, &proposed))
                .map(|entry| entry.id.to_string());
            let in_use = here
                && config
                    .tiers
                    .get(&tier)
                    .is_some_and(|tier| installed.is_some() && model_id(&tier.model) == id);
            let size_bytes = proposed.quant.size_bytes.unwrap_or(0);
            Some(TierPlan {
                tier,
                name: proposed.entry.name.clone(),
                about: proposed.entry.about.clone(),
                reference: proposed.entry.reference(proposed.quant),
                quant: proposed.quant.quant.clone(),
                size_bytes,
                download_bytes: if installed.is_some() { 0 } else { size_bytes },
                reason: proposed.reason,
                fit: self.local.with_measured(proposed.fit, &id),
                installed,
                in_use,
            })
        };
        let tiers: Vec<_> = propose(&catalog, &machine)
            .into_iter()
            .filter_map(of_tier)
            .collect();
        let disk = match another {
            None => Volume::of(&folder).ok(),
            Some(_) => None,
        };
        let mut plan = SetupPlan {
            machine: of_machine(&machine, disk),
            download_bytes: tiers.iter().map(|tier| tier.download_bytes).sum(),
            tiers,
            models_dir: folder.display().to_string(),
            notes: Vec::new(),
            ready: true,
        };
        if let Some(disk) = disk {
            check_room(&mut plan, disk);
        }
        Ok(plan)
    }
}

fn is_installed(entry: &Entry, proposed: &Proposed<'_>) -> bool {
    let size = proposed.quant.size_bytes;
    entry.id == model_id(&proposed.quant.file) && size.is_none_or(|size| size == entry.size_bytes)
}

fn of_machine(machine: &Machine, disk: Option<Volume>) -> SetupMachine {
    SetupMachine {
        ram_bytes: machine.ram_bytes,
        budget_bytes: machine.budget().total_bytes,
        others_bytes: None,
        gpu_bytes: machine.gpu_limit,
        memory_bytes_per_second: machine.memory_bandwidth,
        disk_bytes_per_second: machine.disk_bandwidth,
        disk_free_bytes: disk.map(|disk| disk.free),
    }
}

fn check_room(plan: &mut SetupPlan, disk: Volume) {
    let margin = volume::margin(disk.size);
    if plan.download_bytes > 0 && disk.free < plan.download_bytes.saturating_add(margin) {
        plan.ready = false;
        plan.notes.push(format!(
            "The models need {} and {} must stay free, but {} is free where they go. Free up space, leave a tier out, or put a model on another disk.",
            file_size(plan.download_bytes),
            file_size(margin),
            file_size(disk.free)
        ));
    }
}
