//! Pinned tiers: whether they fit into memory together.

use super::{Current, Models, load};
use tierbar_core::{
    Code, Config, Error, TierId,
    budget::{Budget, gib},
    fit::Machine,
    policy::{Pins, pins},
};

impl Models {
    /// Whether the pinned tiers of a configuration that is not in force yet fit together. Blocking: it reads their models.
    ///
    /// # Errors
    /// `ConfigInvalid` with the sum.
    pub(crate) fn check_pins(&self, config: &Config) -> Result<(), Error> {
        let machine = Machine {
            max_loaded: config.policy.max_loaded,
            ..self.machine
        };
        let current = Current {
            config: config.clone().into(),
            trial: None,
            ..self.current.read().clone()
        };
        match too_many(&of(&current, &machine), &machine.budget()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// What is said of pins that cannot be kept; [`Models::tiers`] leaves them out.
    pub(crate) fn pins_notice(&self) -> Option<String> {
        let machine = self.machine();
        let current = self.current.read().clone();
        let error = too_many(&of(&current, &machine), &machine.budget())?;
        Some(error.to_string())
    }
}

/// The pinned tiers that fit together, and those that do not fit beside them. One whose model cannot be read takes nothing yet.
pub(super) fn of(current: &Current, machine: &Machine) -> Pins {
    let pinned = |id: &&TierId| {
        current
            .config
            .tiers
            .get(*id)
            .is_some_and(|tier| tier.pinned)
    };
    let order = current.config.tier_order();
    let planned = order.into_iter().filter(pinned).map(|id| {
        let planned = current
            .tier(id)
            .and_then(|tier| load(id, &tier, &current.library, machine).ok());
        (
            id.clone(),
            planned.map_or(0, |spec| spec.plan.total_bytes()),
        )
    });
    pins(&machine.budget(), &planned.collect::<Vec<_>>())
}

fn too_many(pins: &Pins, budget: &Budget) -> Option<Error> {
    let first = pins.left_out.first()?;
    let names = |ids: &[TierId]| {
        ids.iter()
            .map(TierId::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let most = match budget.max_loaded {
        1 => "one model is loaded at a time".to_owned(),
        usize::MAX => "as many are loaded as fit".to_owned(),
        count => format!("{count} are loaded at a time"),
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
    fn two_pins_where_one_model_is_loaded_are_refused_with_the_sum() {
        let (_home, models) = models("[tiers.fast]\npinned = true\n");
        assert_eq!(
            (pinned(&models), models.pins_notice()),
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
                    "the budget for models is 12.0 GiB, and one model is loaded at a time"
                ),
            "{error}"
        );
    }

    #[test]
    fn pins_that_were_written_by_hand_are_kept_as_far_as_they_fit() {
        let (_home, alone) = models(TWO);
        assert_eq!(pinned(&alone), ["fast"]);
        assert!(
            alone
                .pins_notice()
                .unwrap()
                .contains("heavy cannot be pinned")
        );
        let (_home, both) = models(&format!("[policy]\nmax_loaded = 2\n{TWO}"));
        assert_eq!(pinned(&both), ["fast", "heavy"]);
        assert_eq!(both.pins_notice(), None);
    }
}
