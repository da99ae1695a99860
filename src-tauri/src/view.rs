//! What the menu shows for a status of the host, as a value: the icon's mark, the text beside it, the items.

pub(crate) mod command;
mod download;
pub(crate) mod item;
mod tier;

use crate::{
    host_text,
    words::{self, Word},
};
use command::Command;
use item::Item;
use std::sync::Arc;
use tierbar_core::{
    Config, Error, TierState,
    budget::GIB,
    config::{MenuBarClick, MenuBarText},
    policy::{Alarm, Stance},
    status::{EngineKind, Pressure, Status, TierStatus},
};

/// The maximum width of a line of the menu, in characters.
const WIDTH: usize = 64;
/// The segments of the memory bar.
const SEGMENTS: u64 = 8;
/// From here on, swap that grows is worth a figure: 1 MiB a minute.
const GROWING: i64 = 1 << 20;

/// The state that the icon shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// No model in memory.
    Idle,
    /// A tier is loading or unloading.
    Loading,
    /// A tier is loading, and half of its model is loaded.
    HalfLoaded,
    Ready,
    /// A tier is answering.
    Busy,
    /// Memory pressure is high, or a tier has failed.
    Warning,
    /// The host could not start.
    Failed,
}

/// What the menu shows besides the status.
#[derive(Debug, Clone, Default)]
pub(crate) struct MenuContext {
    /// What to know of a server that is not the app's own.
    pub(crate) apart: Option<String>,
    /// `None` until it has been read.
    pub(crate) config: Option<Arc<Config>>,
    /// The last entry of the event log.
    pub(crate) last: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) mark: Mark,
    /// The mark in words.
    pub(crate) summary: &'static str,
    /// The text beside the icon.
    pub(crate) title: Option<String>,
    /// What a click on the icon opens.
    pub(crate) click: MenuBarClick,
    pub(crate) items: Vec<Item>,
}

impl View {
    pub(crate) fn starting() -> Self {
        Self::new(
            Mark::Loading,
            vec![
                Item::text("starting", Word::Starting),
                Item::separator("quit"),
                Item::action(Command::Quit, Word::QuitTierbar),
            ],
        )
    }

    fn new(mark: Mark, items: Vec<Item>) -> Self {
        let summary = match mark {
            Mark::Idle => Word::Idle,
            Mark::Loading | Mark::HalfLoaded => Word::Loading,
            Mark::Ready => Word::Ready,
            Mark::Busy => Word::Answering,
            Mark::Warning => Word::NeedsAttention,
            Mark::Failed => Word::NotRunning,
        };
        Self {
            mark,
            summary: summary.text(),
            title: None,
            click: MenuBarClick::Menu,
            items,
        }
    }

    /// The host could not start.
    pub(crate) fn failed(error: &Error) -> Self {
        let text = Word::CouldNotStart.with(&[&error.message]);
        Self::broken(&text, error.hint.as_deref())
    }

    /// While the server runs but cannot be followed.
    pub(crate) fn silent(error: &Error) -> Self {
        let text = Word::CannotShow.with(&[&error.message]);
        Self::broken(&text, error.hint.as_deref())
    }

    /// After a server that is not the app's own has ended.
    pub(crate) fn gone() -> Self {
        Self::broken(Word::Stopped.text(), None)
    }

    fn broken(text: &str, hint: Option<&str>) -> Self {
        let mut items = wrapped("failure", text);
        items.extend(hint.into_iter().flat_map(|hint| wrapped("hint", hint)));
        items.extend([
            Item::separator("retry"),
            Item::action(Command::Retry, Word::TryAgain),
            Item::action(Command::Folder, Word::OpenFolder),
            Item::separator("quit"),
            Item::action(Command::Quit, Word::QuitTierbar),
        ]);
        Self::new(Mark::Failed, items)
    }

    pub(crate) fn running(status: &Status, beside: &MenuContext) -> Self {
        let config = beside.config.as_deref();
        let mut items = vec![
            Item::text("ram", ram_line(status)),
            Item::text("swap", swap_line(status)),
            Item::text("models", models_line(status)),
        ];
        // What holds now, or else what happened last. The Monitor has the whole text.
        if let Some(why) = status.guard.why.as_deref().or(beside.last.as_deref()) {
            let line = host_text::line(why, &status.tiers);
            items.push(Item::action(Command::Why, line));
        }
        let apart = beside.apart.as_deref();
        items.extend(apart.into_iter().flat_map(|text| wrapped("apart", text)));
        items.push(Item::separator("tiers"));
        items.extend(status.tiers.iter().map(|tier| tier::item(tier, config)));
        let paused = status.guard.stance == Stance::Paused;
        let pause = if paused { Word::Resume } else { Word::PauseAll };
        items.push(Item::action(Command::Pause, pause));
        let downloads = download::items(&status.downloads);
        if !downloads.is_empty() {
            items.push(Item::separator("downloads"));
            items.extend(downloads);
        }
        items.extend([
            Item::separator("windows"),
            Item::action(Command::Chat, Word::OpenChat),
            Item::action(Command::Models, Word::Models),
            Item::action(Command::Monitor, Word::Monitor),
            Item::action(Command::Settings, Word::Settings),
            Item::separator("app"),
            Item::action(Command::CopyAddress, Word::CopyAddress),
            Item::check(Command::Login, Word::StartAtLogin, false),
            Item::separator("quit"),
            Item::action(Command::Quit, Word::QuitTierbar),
        ]);
        Self {
            title: config.and_then(|config| title(status, config.menu_bar.text)),
            click: config
                .map(|config| config.menu_bar.click)
                .unwrap_or_default(),
            ..Self::new(mark_of_status(status), items)
        }
    }

    /// Returns the view with a note on top.
    pub(crate) fn with_note(mut self, note: Option<&str>) -> Self {
        let lines = note.into_iter().flat_map(|note| wrapped("note", note));
        drop(self.items.splice(0..0, lines));
        self
    }

    /// Returns the view with the login item as it is.
    pub(crate) fn with_login(mut self, on: bool) -> Self {
        for item in &mut self.items {
            if let Item::Check {
                command: Command::Login,
                checked,
                ..
            } = item
            {
                *checked = on;
            }
        }
        self
    }
}

fn mark_of_status(status: &Status) -> Mark {
    let any = |states: &[TierState]| status.tiers.iter().any(|tier| states.contains(&tier.state));
    let loading = |tier: &TierStatus| tier.state == TierState::Starting;
    let alarmed = status.guard.alarm > Alarm::None;
    if alarmed || status.ram.pressure > Pressure::Normal {
        Mark::Warning
    } else if any(&[TierState::Starting, TierState::Stopping]) {
        let loaded = status.tiers.iter().filter(|tier| loading(tier));
        match loaded.filter_map(|tier| tier.loaded_percent).max() {
            Some(50..) => Mark::HalfLoaded,
            _ => Mark::Loading,
        }
    } else if any(&[TierState::Busy]) {
        Mark::Busy
    } else if any(&[TierState::Failed]) {
        Mark::Warning
    } else if any(&[TierState::Ready]) {
        Mark::Ready
    } else {
        Mark::Idle
    }
}

fn title(status: &Status, text: MenuBarText) -> Option<String> {
    match text {
        MenuBarText::None => None,
        MenuBarText::Speed => status.speed.decode_tokens_per_second.map(speed),
        MenuBarText::Memory => Some(format!("RAM {} %", used_percent(status))),
    }
}

/// Formats `RAM 9.1 of 16 GB, 57 % ▰▰▰▰▰▱▱▱`. A GB is 2³⁰ bytes, as the system counts memory. The bar is last: screen
/// readers read the figures first.
fn ram_line(status: &Status) -> String {
    let ram = &status.ram;
    let used = ram.total_bytes.saturating_sub(ram.available_bytes);
    let percent = used_percent(status);
    let filled = (percent * SEGMENTS + 50) / 100;
    let bar: String = (0..SEGMENTS)
        .map(|segment| if segment < filled { '▰' } else { '▱' })
        .collect();
    let line = match ram.pressure {
        Pressure::Normal => Word::Ram,
        Pressure::Warning => Word::RamHigh,
        Pressure::Critical => Word::RamCritical,
    };
    let used = words::figure(&format!("{:.1}", gigabytes(used)));
    let total = words::figure(&whole_or_tenths(gigabytes(ram.total_bytes)));
    let figures = line.with(&[&used, &total, &percent.to_string()]);
    format!("{figures} {bar}")
}

fn used_percent(status: &Status) -> u64 {
    let ram = &status.ram;
    let used = u128::from(ram.total_bytes.saturating_sub(ram.available_bytes));
    let percent = used * 100 / u128::from(ram.total_bytes.max(1));
    u64::try_from(percent).unwrap_or(100)
}

/// Formats `Swap 0.2 GB, growing 120 MB/min`.
fn swap_line(status: &Status) -> String {
    let swap = &status.swap;
    let used = memory(swap.used_bytes);
    if swap.growth_bytes_per_minute < GROWING {
        return Word::Swap.with(&[&used]);
    }
    let growth = memory(swap.growth_bytes_per_minute.unsigned_abs());
    Word::SwapGrowing.with(&[&used, &growth])
}

/// Formats `1 model loaded · 62 MB · 12.4 tok/s`: the models on this machine, their measured memory, and the last speed.
fn models_line(status: &Status) -> String {
    let loaded: Vec<_> = status
        .tiers
        .iter()
        .filter(|tier| tier.engine != EngineKind::Endpoint)
        .filter(|tier| matches!(tier.state, TierState::Ready | TierState::Busy))
        .collect();
    let mut parts = vec![match loaded.len() {
        0 => Word::NoModelLoaded.into(),
        1 => Word::OneModelLoaded.into(),
        many => Word::ModelsLoaded.with(&[&many.to_string()]),
    }];
    let bytes: u64 = loaded.iter().filter_map(|tier| tier.footprint_bytes).sum();
    if bytes > 0 {
        parts.push(memory(bytes));
    }
    parts.extend(status.speed.decode_tokens_per_second.map(speed));
    parts.join(" · ")
}

/// Formats `12.4 tok/s`.
fn speed(tokens_per_second: f64) -> String {
    words::figure(&if tokens_per_second < 100.0 {
        format!("{tokens_per_second:.1} tok/s")
    } else {
        format!("{tokens_per_second:.0} tok/s")
    })
}

/// Formats `62 MB` and `1.2 GB`, of 2²⁰ and 2³⁰ bytes.
fn memory(bytes: u64) -> String {
    match bytes {
        0..0x4000_0000 => Word::Megabytes.with(&[&bytes.div_ceil(1 << 20).to_string()]),
        _ => Word::Gigabytes.with(&[&words::figure(&format!("{:.1}", gigabytes(bytes)))]),
    }
}

/// Formats `16` and `23.5`: a machine's memory is mostly a whole number.
fn whole_or_tenths(figure: f64) -> String {
    format!("{figure:.1}").trim_end_matches(".0").to_owned()
}

fn gigabytes(bytes: u64) -> f64 {
    // For display: a double holds any memory size to far better than a decimal.
    #[expect(clippy::cast_precision_loss)]
    let bytes = bytes as f64;
    bytes / GIB as f64
}

fn truncate(text: &str) -> String {
    if text.chars().count() <= WIDTH {
        return text.to_owned();
    }
    let kept: String = text.chars().take(WIDTH - 1).collect();
    format!("{}…", kept.trim_end())
}

/// Returns a text as items of the menu, one for each line.
fn wrapped(key: &str, text: &str) -> Vec<Item> {
    let line = |(number, line)| Item::text(&format!("{key}:{number}"), line);
    let lines = wrap(&host_text::with_units(text));
    lines.into_iter().enumerate().map(line).collect()
}

/// Breaks a text into lines of at most [`WIDTH`] characters, between words where there are any.
fn wrap(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(truncate(word)),
        }
    }
    lines
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tierbar_core::{Code, ModelId, TierId, config::TierConfig, status};

    pub(crate) fn tier_of(id: &str, state: TierState) -> TierStatus {
        TierStatus {
            model: Some(ModelId("SmolLM2-135M-Instruct.Q4_1".to_owned())),
            context_tokens: 4096,
            ..TierStatus::new(TierId::new(id).unwrap(), state)
        }
    }

    fn status_of(states: &[(&str, TierState)]) -> Status {
        let tiers = states.iter().map(|(id, state)| tier_of(id, *state));
        Status {
            version: "0.1.0".to_owned(),
            url: "http://127.0.0.1:11435".to_owned(),
            ram: status::Ram {
                total_bytes: 16 * GIB,
                available_bytes: 7 * GIB,
                pressure: Pressure::Normal,
            },
            swap: status::Swap {
                used_bytes: GIB / 5,
                growth_bytes_per_minute: 0,
            },
            speed: status::Speed::default(),
            budget: status::BudgetStatus::default(),
            guard: status::GuardStatus::default(),
            tiers: tiers.collect(),
            downloads: Vec::new(),
            models_revision: 0,
            config_revision: 0,
            notices: Vec::new(),
            notifications: Vec::new(),
            refused_origins: Vec::new(),
        }
    }

    fn running(status: &Status) -> View {
        View::running(status, &MenuContext::default())
    }

    fn texts(view: &View) -> Vec<&str> {
        view.items
            .iter()
            .filter_map(|item| match item {
                Item::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn the_header_shows_memory_swap_models_and_speed() {
        let mut status = status_of(&[("fast", TierState::Ready), ("heavy", TierState::Stopping)]);
        assert_eq!(
            texts(&running(&status)),
            [
                "RAM 9.0 of 16 GB, 56 % ▰▰▰▰▱▱▱▱",
                "Swap 205 MB",
                "1 model loaded"
            ]
        );
        status.tiers[0].footprint_bytes = Some(62 << 20);
        status.speed.decode_tokens_per_second = Some(12.44);
        status.swap.growth_bytes_per_minute = 120 << 20;
        status.ram.total_bytes = 47 * GIB / 2;
        status.ram.pressure = Pressure::Critical;
        assert_eq!(
            texts(&running(&status)),
            [
                "RAM 16.5 of 23.5 GB, 70 %, critical memory pressure ▰▰▰▰▰▰▱▱",
                "Swap 205 MB, growing 120 MB/min",
                "1 model loaded · 62 MB · 12.4 tok/s",
            ]
        );
        let none = status_of(&[]);
        assert_eq!(texts(&running(&none))[2], "No model loaded");
    }

    #[test]
    fn a_loaded_endpoint_uses_no_memory_here() {
        let mut status = status_of(&[("cloud", TierState::Ready)]);
        status.tiers[0].engine = EngineKind::Endpoint;
        assert_eq!(models_line(&status), "No model loaded");
    }

    #[test]
    fn the_text_beside_the_icon_is_chosen() {
        let mut status = status_of(&[]);
        let mut config = Config::default();
        let mut shown = |text, status: &Status| {
            config.menu_bar.text = text;
            let beside = MenuContext {
                config: Some(Arc::new(config.clone())),
                ..MenuContext::default()
            };
            View::running(status, &beside).title
        };
        assert_eq!(shown(MenuBarText::None, &status), None);
        assert_eq!(shown(MenuBarText::Speed, &status), None);
        assert_eq!(shown(MenuBarText::Memory, &status).unwrap(), "RAM 56 %");
        status.speed.decode_tokens_per_second = Some(12.4);
        assert_eq!(shown(MenuBarText::Speed, &status).unwrap(), "12.4 tok/s");
        assert_eq!(running(&status).title, None);
    }

    #[test]
    fn one_line_says_why_below_the_figures() {
        let mut status = status_of(&[("primary", TierState::Ready)]);
        let resume = Item::action(Command::Pause, "Resume");
        assert!(!running(&status).items.contains(&resume));
        let beside = MenuContext {
            last: Some("primary was unloaded; freed 3.0 GiB".to_owned()),
            ..MenuContext::default()
        };
        let why = |view: &View| view.items[3].clone();
        let last = Item::action(Command::Why, "Everyday was unloaded; freed 3.0 GB");
        assert_eq!(why(&View::running(&status, &beside)), last);
        // What holds now counts for more than what happened last.
        status.guard.stance = Stance::Paused;
        status.guard.why = Some("it is paused".to_owned());
        let view = View::running(&status, &beside);
        assert!(view.items.contains(&resume));
        assert_eq!(why(&view), Item::action(Command::Why, "It is paused"));
        assert!(!view.items.contains(&last));
        let view = view.with_note(Some("it failed"));
        assert_eq!(texts(&view)[0], "it failed");
    }

    #[test]
    fn every_item_has_a_key_of_its_own() {
        fn keys(items: &[Item], found: &mut Vec<String>) {
            for item in items {
                found.push(item.key());
                if let Item::Submenu { items, .. } = item {
                    keys(items, found);
                }
            }
        }
        let mut status = status_of(&[("fast", TierState::Failed), ("heavy", TierState::Ready)]);
        status.tiers[0].reason = Some("long reason ".repeat(20));
        status.guard.why = Some("long reason ".repeat(20));
        let mut config = Config::default();
        for tier in &status.tiers {
            config.tiers.insert(tier.id.clone(), TierConfig::default());
        }
        let beside = MenuContext {
            apart: Some("apart".to_owned()),
            config: Some(Arc::new(config)),
            last: Some("last".to_owned()),
        };
        let mut found = Vec::new();
        let view = View::running(&status, &beside).with_note(Some("note"));
        keys(&view.items, &mut found);
        let all = found.len();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), all, "{found:?}");
    }

    #[test]
    fn the_login_item_is_shown_as_it_is() {
        let on = Item::check(Command::Login, "Start at Login", true);
        let view = running(&status_of(&[]));
        assert!(!view.items.contains(&on));
        assert!(view.with_login(true).items.contains(&on));
    }

    #[test]
    fn the_mark_puts_activity_before_failures() {
        use TierState::{Busy, Failed, Ready, Starting, Stopped};
        let cases: [(&[(&str, TierState)], Mark); 6] = [
            (&[("fast", Stopped)], Mark::Idle),
            (&[("fast", Ready), ("heavy", Stopped)], Mark::Ready),
            (&[("fast", Ready), ("heavy", Failed)], Mark::Warning),
            (&[("fast", Busy), ("heavy", Failed)], Mark::Busy),
            (&[("fast", Busy), ("heavy", Starting)], Mark::Loading),
            (&[], Mark::Idle),
        ];
        for (states, expected) in cases {
            assert_eq!(mark_of_status(&status_of(states)), expected, "{states:?}");
        }
        let mut short = status_of(&[("fast", Busy)]);
        short.ram.pressure = Pressure::Warning;
        assert_eq!(mark_of_status(&short), Mark::Warning);
        let mut loading = status_of(&[("fast", Starting)]);
        loading.tiers[0].loaded_percent = Some(49);
        assert_eq!(mark_of_status(&loading), Mark::Loading);
        loading.tiers[0].loaded_percent = Some(50);
        assert_eq!(mark_of_status(&loading), Mark::HalfLoaded);
        let mut alarmed = status_of(&[("fast", Busy)]);
        alarmed.guard.alarm = Alarm::Hold;
        assert_eq!(mark_of_status(&alarmed), Mark::Warning);
    }

    #[test]
    fn a_failed_start_shows_the_whole_error_with_its_hint() {
        let message = "127.0.0.1:11435 is taken by another program (pid 4711, ollama), so the API cannot listen there";
        let error = Error::new(Code::PortTaken, message).hint("end it, or set another address");
        let view = View::failed(&error);
        let lines = texts(&view);
        assert!(
            lines.iter().all(|line| line.chars().count() <= WIDTH),
            "{lines:?}"
        );
        let text = lines.join(" ");
        assert!(
            text.contains(message) && text.ends_with("end it, or set another address"),
            "{text}"
        );
    }
}
