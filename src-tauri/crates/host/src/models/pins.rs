//! Pinned tiers: whether they fit into memory together.

use super::{Models, library_with, load, options};
use tierbar_core::{
    Code, Config, Error, TierId, TierKind,
    budget::{Budget, gib},
    fit::Machine,
    policy::{Holding, Pins, pins},
};
use tierbar_library::Library;

impl Models {
    /// Checks that the pinned tiers of a new configuration fit together, or no worse than those of the current one.
    /// Blocking: it reads their models.
    ///
    /// # Errors
    /// `ConfigInvalid` with the sum.
    pub(crate) fn check_pins(&self, config: &Config) -> Result<(), Error> {
        let current = self.current.read().clone();
        let after = library_with(&current.library, options(&self.folder, config));
        let machine = self.machine_of(config);
        let pins = pins_that_fit(config, &after, &machine);
        let before = self.machine_of(&current.config);
        let was = pins_that_fit(&current.config, &current.library, &before);
        match too_many(&pins, &machine.budget()) {
            Some(error) if pins.left_out != was.left_out => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns the pinned tiers that fit together, and those that do not fit beside them. One whose model cannot be read counts
/// as zero bytes.
pub(super) fn pins_that_fit(config: &Config, library: &Library, machine: &Machine) -> Pins {
    let pinned = config.tier_order().into_iter().filter_map(|id| {
        let tier = config.tiers.get(id).filter(|tier| tier.pinned)?;
        let unread = Holding {
            kind: TierKind::Generative,
            bytes: 0,
            reserved_bytes: 0,
        };
        let spec = load(id, tier, library, machine).ok();
        let holding = spec.map_or(unread, |spec| Holding::from(&spec.plan));
        Some((id.clone(), holding))
    });
    pins(&machine.budget(), &pinned.collect::<Vec<_>>())
}

pub(super) fn too_many(pins: &Pins, budget: &Budget) -> Option<Error> {
    let first = pins.left_out.first()?;
    let names = |ids: &[TierId]| {
        ids.iter()
            .map(TierId::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let most = match budget.max_loaded {
        1 => "one model can be loaded at a time".to_owned(),
        usize::MAX => "as many models can be loaded as fit".to_owned(),
        count => format!("{count} models can be loaded at a time"),
    };
    let what = format!(
        "{first} cannot be pinned beside {}: together the pinned tiers need {}, the budget for models is {}, and {most}",
        names(&pins.held),
        gib(pins.total_bytes),
        gib(budget.total_bytes),
    );
    let hint = format!(
        "pin only {}, or only {}",
        names(&pins.held),
        names(&pins.left_out)
    );
    Some(Error::new(Code::ConfigInvalid, what).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::super::tests::models;
    use super::*;

    const TWO: &str = "[tiers.fast]\npinned = true\n[tiers.heavy]\npinned = true\n";

    fn pinned(models: &Models) -> Vec<String> {
        let tiers = models.tiers().into_iter().filter(|tier| tier.pinned);
        tiers.map(|tier| tier.id.to_string()).collect()
    }

    #[test]
    fn two_pins_beyond_the_budget_are_refused_with_the_sum() {
        let (_home, models) = models("[tiers.fast]\npinned = true\n");
        assert_eq!(
            (pinned(&models), models.tiers_and_notice().1),
            (vec!["fast".into()], None)
        );
        let error = models
            .check_pins(&toml::from_str(TWO).unwrap())
            .unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid);
        assert!(
            error
                .message
                .starts_with("heavy cannot be pinned beside fast: together")
                && error.message.ends_with(
                    "the budget for models is 12.0 GiB, and one model can be loaded at a time"
                ),
            "{error}"
        );
    }

    #[test]
    fn a_refused_pin_names_the_sum() {
        let name = |name: &str| TierId::new(name).unwrap();
        let pins = Pins {
            held: vec![name("fast"), name("primary")],
            left_out: vec![name("heavy")],
            total_bytes: 14 << 30,
        };
        let budget = Budget {
            total_bytes: 12 << 30,
            max_loaded: 3,
            paging: tierbar_core::config::Paging::Mmap,
            embedder_bytes: 0,
        };
        let message = too_many(&pins, &budget).unwrap().message;
        let sum = "heavy cannot be pinned beside fast, primary: together the pinned tiers need 14.0 GiB, the budget for models is \
                   12.0 GiB, and 3 models can be loaded at a time";
        assert_eq!(message, sum);
    }

    #[test]
    fn pins_that_do_not_fit_allow_other_changes() {
        let (_home, models) = models(TWO);
        let check = |config: &str| models.check_pins(&toml::from_str(config).unwrap());
        check(&format!("[downloads]\nrate_limit = 5\n{TWO}")).unwrap();
        check("[tiers.fast]\npinned = true\n").unwrap();
        check(&format!("{TWO}[tiers.spare]\npinned = true\n")).unwrap_err();
    }

    #[test]
    fn pins_in_the_file_are_kept_as_far_as_they_fit() {
        let (_home, alone) = models(TWO);
        assert_eq!(pinned(&alone), ["fast"]);
        assert!(
            alone
                .tiers_and_notice()
                .1
                .unwrap()
                .contains("heavy cannot be pinned")
        );
        let (_home, both) = models(&format!("[policy]\nmax_loaded = 2\n{TWO}"));
        assert_eq!(pinned(&both), ["fast", "heavy"]);
        assert_eq!(both.tiers_and_notice().1, None);
    }
}
