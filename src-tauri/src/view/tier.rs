//! A tier's submenu: its state, and what can be done with it.

use super::{
    command::{Command, TierSetting},
    item::Item,
    memory, truncate, wrapped,
};
use crate::words::{self, Word};
use tierbar_core::{
    Config, TierState,
    config::IdleUnload,
    status::{EngineKind, TierStatus},
};

/// The times after which an idle tier can be unloaded, as the configuration and the menu write them.
const UNLOAD: [(&str, Word); 7] = [
    ("1m", Word::AfterOneMinute),
    ("5m", Word::AfterFiveMinutes),
    ("10m", Word::AfterTenMinutes),
    ("30m", Word::AfterThirtyMinutes),
    ("1h", Word::AfterOneHour),
    ("4h", Word::AfterFourHours),
    ("never", Word::Never),
];

/// `config`: `None` until it has been read.
pub(super) fn item(tier: &TierStatus, config: Option<&Config>) -> Item {
    let of = |command| Command::Tier(tier.id.clone(), command);
    let mut items = Vec::new();
    if let Some(reason) = &tier.reason {
        items.extend(wrapped(&format!("{}:reason", tier.id), reason));
    }
    items.push(Item::action(Command::Toggle(tier.id.clone()), action(tier)));
    // Another server loads and unloads its own models.
    let settings = config
        .filter(|_| tier.engine != EngineKind::Endpoint)
        .and_then(|config| Some((config, config.tiers.get(&tier.id)?)));
    if let Some((config, settings)) = settings {
        let is_home = config.policy.home == tier.id.as_str();
        items.extend([
            Item::separator(&format!("{}:settings", tier.id)),
            Item::check(of(TierSetting::Pin), Word::KeepLoaded, settings.pinned),
            Item::check(of(TierSetting::Home), Word::HomeTier, is_home),
        ]);
        if !settings.pinned {
            items.push(unload_when_idle(tier, settings.idle_unload));
        }
    }
    Item::Submenu {
        key: format!("tier:{}", tier.id),
        text: truncate(&format!("{} — {}", words::tier(&tier.id), state(tier))),
        items,
    }
}

fn unload_when_idle(tier: &TierStatus, current: IdleUnload) -> Item {
    let current = String::from(current);
    let choice = |(time, text): &(&str, Word)| {
        let command = TierSetting::UnloadAfter((*time).to_owned());
        Item::check(
            Command::Tier(tier.id.clone(), command),
            *text,
            *time == current,
        )
    };
    Item::Submenu {
        key: format!("unload:{}", tier.id),
        text: Word::UnloadWhenIdle.into(),
        items: UNLOAD.iter().map(choice).collect(),
    }
}

/// What a click does now.
fn action(tier: &TierStatus) -> Word {
    match tier.state {
        TierState::Stopped | TierState::Failed if tier.model.is_none() => Word::ChooseModel,
        TierState::Stopped => Word::Load,
        TierState::Failed => Word::TryAgain,
        TierState::Starting | TierState::Ready | TierState::Busy => Word::Unload,
        TierState::Stopping => Word::UnloadNow,
    }
}

fn state(tier: &TierStatus) -> String {
    let Some(model) = tier.model.as_ref().map(|model| model.as_str()) else {
        return Word::NoModelChosen.into();
    };
    match (tier.state, tier.footprint_bytes) {
        (TierState::Stopped, _) => Word::ModelNotLoaded.with(&[model]),
        (TierState::Ready, Some(bytes)) => Word::ModelReadyIn.with(&[model, &memory(bytes)]),
        (TierState::Ready, None) => Word::ModelReady.with(&[model]),
        (TierState::Starting, _) => match tier.loaded_percent {
            Some(percent) => Word::ModelLoadingTo.with(&[model, &percent.to_string()]),
            None => Word::ModelLoading.with(&[model]),
        },
        (TierState::Busy, Some(bytes)) => Word::ModelAnsweringIn.with(&[model, &memory(bytes)]),
        (TierState::Busy, None) => Word::ModelAnswering.with(&[model]),
        (TierState::Stopping, _) => Word::ModelUnloading.with(&[model]),
        (TierState::Failed, _) => Word::ModelFailed.with(&[model]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{WIDTH, tests::tier_of};
    use tierbar_core::{ModelId, budget::GIB, config::TierConfig};

    fn parts(item: Item) -> (String, Vec<Item>) {
        let Item::Submenu { text, items, .. } = item else {
            panic!("{item:?}");
        };
        (text, items)
    }

    #[test]
    fn a_tiers_text_has_state_model_and_memory() {
        let text = |state, bytes, percent| {
            let mut tier = tier_of("primary", state);
            tier.model = Some(ModelId("m".to_owned()));
            tier.footprint_bytes = bytes;
            tier.loaded_percent = percent;
            parts(item(&tier, None)).0
        };
        for (state, bytes, percent, expected) in [
            (TierState::Stopped, None, None, "Everyday — m, not loaded"),
            (
                TierState::Starting,
                None,
                Some(40),
                "Everyday — loading m, 40 %",
            ),
            (
                TierState::Ready,
                Some(GIB),
                None,
                "Everyday — m, ready, 1.0 GB",
            ),
            (
                TierState::Busy,
                Some(62 << 20),
                None,
                "Everyday — m, answering, 62 MB",
            ),
            (
                TierState::Stopping,
                Some(GIB),
                None,
                "Everyday — unloading m",
            ),
            (TierState::Failed, None, None, "Everyday — m, failed"),
        ] {
            assert_eq!(text(state, bytes, percent), expected);
        }
        let mut bare = tier_of("primary", TierState::Stopped);
        bare.model = None;
        let (text, items) = parts(item(&bare, None));
        assert_eq!(text, "Everyday — no model chosen");
        let toggle = Command::Toggle(bare.id.clone());
        assert_eq!(items, [Item::action(toggle, "Choose a Model…")]);
    }

    #[test]
    fn a_failed_tier_shows_the_whole_reason_in_its_submenu() {
        let mut tier = tier_of("primary", TierState::Failed);
        tier.reason = Some("very long reason ".repeat(9));
        let (text, items) = parts(item(&tier, None));
        assert!(text.chars().count() <= WIDTH, "{text}");
        assert!(items.len() > 2, "{items:?}");
        assert!(matches!(items.last(), Some(Item::Action { text, .. }) if text == "Try Again"));
    }

    #[test]
    fn the_submenu_shows_and_changes_the_tiers_settings() {
        let tier = tier_of("fast", TierState::Ready);
        let mut config = Config::default();
        config.policy.home = "fast".to_owned();
        config.tiers.insert(tier.id.clone(), TierConfig::default());
        let (_, items) = parts(item(&tier, Some(&config)));
        let of = |command| Command::Tier(tier.id.clone(), command);
        assert!(items.contains(&Item::check(of(TierSetting::Pin), "Keep Loaded", false)));
        assert!(items.contains(&Item::check(of(TierSetting::Home), "Home Tier", true)));
        let Some(Item::Submenu { items: times, .. }) = items.last() else {
            panic!("{items:?}");
        };
        let ten = TierSetting::UnloadAfter("10m".to_owned());
        assert!(times.contains(&Item::check(of(ten), "After 10 Minutes", true)));

        let pinned = TierConfig {
            pinned: true,
            ..TierConfig::default()
        };
        config.tiers.insert(tier.id.clone(), pinned);
        let (_, items) = parts(item(&tier, Some(&config)));
        assert!(items.contains(&Item::check(of(TierSetting::Pin), "Keep Loaded", true)));
        assert!(!items.iter().any(|item| item.key() == "unload:fast"));
    }
}
