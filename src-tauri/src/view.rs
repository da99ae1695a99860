//! What the tray shows for a status of the host, as a value: the icon's mark, the lines of text, the tiers.

mod download;

use tierbar_core::{
    Error, TierId, TierState,
    budget::GIB,
    policy::{Alarm, Stance},
    status::{Pressure, Status, TierStatus},
};

/// The maximum width of a line of the menu, in characters.
const WIDTH: usize = 64;

/// The state that the icon shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// No model in memory.
    Idle,
    /// A tier is loading or unloading.
    Loading,
    Ready,
    /// A tier is answering.
    Busy,
    /// Memory pressure is high, or a tier has failed.
    Warning,
    /// The host could not start.
    Failed,
}

/// A tier's item: checked while the tier is loaded or loading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tier {
    pub(crate) id: TierId,
    pub(crate) text: String,
    pub(crate) checked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) mark: Mark,
    /// Plain text at the top.
    pub(crate) lines: Vec<String>,
    pub(crate) tiers: Vec<Tier>,
    pub(crate) paused: bool,
    /// The progress of the first download.
    pub(crate) download: Option<String>,
    pub(crate) phase: Phase,
}

/// Determines which commands the menu has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Failed,
    Running,
}

impl View {
    pub(crate) fn starting() -> Self {
        Self {
            mark: Mark::Loading,
            lines: vec!["Starting…".to_owned()],
            tiers: Vec::new(),
            paused: false,
            download: None,
            phase: Phase::Starting,
        }
    }

    pub(crate) fn failed(error: &Error) -> Self {
        Self::broken(
            &format!("Tierbar could not start: {}", error.message),
            error.hint.as_deref(),
        )
    }

    /// While the server runs but cannot be followed.
    pub(crate) fn silent(error: &Error) -> Self {
        let message = &error.message;
        Self::broken(
            &format!("The menu cannot show Tierbar: {message}"),
            error.hint.as_deref(),
        )
    }

    /// After a server that is not the app's own has ended.
    pub(crate) fn gone() -> Self {
        let text = "Tierbar was stopped. The menu reconnects when Tierbar starts again. \
                    Choose Try Again to start it in this app.";
        Self::broken(text, None)
    }

    fn broken(text: &str, hint: Option<&str>) -> Self {
        Self {
            lines: [text].into_iter().chain(hint).flat_map(wrap).collect(),
            mark: Mark::Failed,
            phase: Phase::Failed,
            ..Self::starting()
        }
    }

    /// `apart`: what to know of a server that is not the app's own.
    pub(crate) fn running(status: &Status, apart: Option<&str>) -> Self {
        Self {
            mark: mark(status),
            lines: [status_line(status), models_line(status)]
                .into_iter()
                .chain(status.guard.why.iter().flat_map(|why| wrap(why)))
                .chain(apart.into_iter().flat_map(wrap))
                .collect(),
            tiers: status.tiers.iter().map(tier).collect(),
            paused: status.guard.stance == Stance::Paused,
            download: download::line(&status.downloads),
            phase: Phase::Running,
        }
    }

    /// Returns the view with a note below its lines.
    pub(crate) fn with_note(mut self, note: Option<&str>) -> Self {
        self.lines.extend(note.into_iter().flat_map(wrap));
        self
    }

    /// Whether one menu can show both views by changing texts and checks alone.
    pub(crate) fn same_items(&self, other: &Self) -> bool {
        self.phase == other.phase
            && self.lines.len() == other.lines.len()
            && self.download.is_some() == other.download.is_some()
            && self
                .tiers
                .iter()
                .map(|tier| &tier.id)
                .eq(other.tiers.iter().map(|tier| &tier.id))
    }
}

fn mark(status: &Status) -> Mark {
    let any = |states: &[TierState]| status.tiers.iter().any(|tier| states.contains(&tier.state));
    let alarmed = status.guard.alarm > Alarm::None;
    if alarmed || status.ram.pressure > Pressure::Normal {
        Mark::Warning
    } else if any(&[TierState::Starting, TierState::Stopping]) {
        Mark::Loading
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

/// Formats `RAM 9.1 of 16 GB · swap 0.2 GB · 41 tok/s`. A GB is 2³⁰ bytes, as the system counts memory.
fn status_line(status: &Status) -> String {
    let ram = &status.ram;
    let used = ram.total_bytes.saturating_sub(ram.available_bytes);
    let mut line = format!(
        "RAM {:.1} of {} GB · swap {:.1} GB",
        gigabytes(used),
        whole_or_tenths(gigabytes(ram.total_bytes)),
        gigabytes(status.swap.used_bytes)
    );
    if status.swap.growth_bytes_per_minute > 0 {
        line.push_str(", growing");
    }
    if let Some(speed) = status.speed.decode_tokens_per_second {
        line.push_str(&format!(" · {speed:.0} tok/s"));
    }
    match ram.pressure {
        Pressure::Normal => {}
        Pressure::Warning => line.push_str(" · high memory pressure"),
        Pressure::Critical => line.push_str(" · critical memory pressure"),
    }
    line
}

/// Formats `Models 1.2 GB, 4.1 of 12 GB planned`: the tiers' measured memory, their plans and the budget.
fn models_line(status: &Status) -> String {
    let footprints = status.tiers.iter().filter_map(|tier| tier.footprint_bytes);
    format!(
        "Models {:.1} GB, {:.1} of {} GB planned",
        gigabytes(footprints.sum()),
        gigabytes(status.budget.planned_bytes),
        whole_or_tenths(gigabytes(status.budget.total_bytes))
    )
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

fn tier(tier: &TierStatus) -> Tier {
    let model = tier
        .model
        .as_ref()
        .map_or("no model chosen", |model| model.as_str());
    let reason = tier.reason.as_deref();
    let name = format!("{} ", tier.id);
    let unnamed = |reason| str::strip_prefix(reason, &*name).unwrap_or(reason);
    let state = match tier.state {
        // Why it was unloaded, or what it waits for. The line already starts with its name.
        TierState::Stopped => reason.map_or(model, unnamed).to_owned(),
        TierState::Ready => match tier.footprint_bytes {
            Some(bytes) => format!("{model}, {:.1} GB", gigabytes(bytes)),
            None => model.to_owned(),
        },
        TierState::Starting => match tier.loaded_percent {
            Some(percent) => format!("loading {model}, {percent} %"),
            None => format!("loading {model}…"),
        },
        TierState::Busy => format!("{model}, answering"),
        TierState::Stopping => "unloading; click to unload now".to_owned(),
        TierState::Failed => format!("failed: {}", reason.unwrap_or("see the event log")),
    };
    Tier {
        id: tier.id.clone(),
        text: truncate(&format!("{} — {state}", capitalize(tier.id.as_str()))),
        checked: matches!(
            tier.state,
            TierState::Starting | TierState::Ready | TierState::Busy
        ),
    }
}

fn capitalize(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

fn truncate(text: &str) -> String {
    if text.chars().count() <= WIDTH {
        return text.to_owned();
    }
    let kept: String = text.chars().take(WIDTH - 1).collect();
    format!("{}…", kept.trim_end())
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
mod tests {
    use super::*;
    use tierbar_core::{Code, ModelId, status};

    fn status_of(states: &[(&str, TierState)]) -> Status {
        let tiers = states.iter().map(|(id, state)| TierStatus {
            id: TierId::new(*id).unwrap(),
            state: *state,
            engine: status::EngineKind::Embedded,
            model: Some(ModelId("SmolLM2-135M-Instruct.Q4_1".to_owned())),
            is_starter: false,
            aliases: Vec::new(),
            kind: tierbar_core::ModelKind::Chat,
            pid: None,
            footprint_bytes: None,
            plan: None,
            context_tokens: 4096,
            kv_cache: tierbar_core::config::KvCache::F16,
            input_modalities: Vec::new(),
            loaded_percent: None,
            reason: None,
            unloads_at_ms: None,
            steps_down_to: None,
        });
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
            notices: Vec::new(),
            notifications: Vec::new(),
            refused_origins: Vec::new(),
        }
    }

    #[test]
    fn the_status_line_shows_the_speed_once_known() {
        let mut status = status_of(&[]);
        assert_eq!(status_line(&status), "RAM 9.0 of 16 GB · swap 0.2 GB");
        status.speed.decode_tokens_per_second = Some(41.3);
        assert_eq!(
            status_line(&status),
            "RAM 9.0 of 16 GB · swap 0.2 GB · 41 tok/s"
        );
        status.ram.total_bytes = 47 * GIB / 2;
        assert_eq!(
            status_line(&status),
            "RAM 16.5 of 23.5 GB · swap 0.2 GB · 41 tok/s"
        );
        status.ram.pressure = Pressure::Critical;
        assert!(status_line(&status).ends_with("critical memory pressure"));
        status.swap.growth_bytes_per_minute = 1;
        assert!(status_line(&status).contains("swap 0.2 GB, growing · 41"));
    }

    #[test]
    fn the_models_line_shows_measured_and_planned_memory() {
        let mut status = status_of(&[("fast", TierState::Ready), ("heavy", TierState::Stopping)]);
        for tier in &mut status.tiers {
            tier.footprint_bytes = Some(GIB);
        }
        status.budget.total_bytes = 12 * GIB;
        status.budget.planned_bytes = 41 * GIB / 10;
        let view = View::running(&status, None);
        assert_eq!(view.lines[1], "Models 2.0 GB, 4.1 of 12 GB planned");
        assert_eq!(
            view.tiers[0].text,
            "Fast — SmolLM2-135M-Instruct.Q4_1, 1.0 GB"
        );
    }

    #[test]
    fn the_memory_guards_reason_is_below_the_figures() {
        let mut status = status_of(&[]);
        assert!(!View::running(&status, None).paused);
        status.guard.stance = Stance::Paused;
        status.guard.why = Some("it is paused".to_owned());
        let view = View::running(&status, None);
        assert!(view.paused);
        assert_eq!(view.lines[2..], ["it is paused"]);
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
            assert_eq!(mark(&status_of(states)), expected, "{states:?}");
        }
        let mut short = status_of(&[("fast", Busy)]);
        short.ram.pressure = Pressure::Warning;
        assert_eq!(mark(&short), Mark::Warning);
        let mut alarmed = status_of(&[("fast", Busy)]);
        alarmed.guard.alarm = Alarm::Hold;
        assert_eq!(mark(&alarmed), Mark::Warning);
    }

    #[test]
    fn a_tiers_text_describes_its_state() {
        let text = |state, reason: Option<&str>, model: Option<&str>| {
            let mut status = status_of(&[("primary", state)]);
            status.tiers[0].reason = reason.map(str::to_owned);
            status.tiers[0].model = model.map(|model| ModelId(model.to_owned()));
            tier(&status.tiers[0])
        };
        assert_eq!(text(TierState::Ready, None, Some("m")).text, "Primary — m");
        assert!(text(TierState::Starting, None, Some("m")).checked);
        for (reason, text_shown) in [
            (
                "unloaded to make room for heavy",
                "Primary — unloaded to make room for heavy",
            ),
            (
                "waiting for heavy's memory to be freed",
                "Primary — waiting for heavy's memory to be freed",
            ),
            ("primary was stopped", "Primary — was stopped"),
        ] {
            assert_eq!(
                text(TierState::Stopped, Some(reason), Some("m")).text,
                text_shown
            );
        }
        assert_eq!(
            text(TierState::Stopped, None, None).text,
            "Primary — no model chosen"
        );
        let failed = text(
            TierState::Failed,
            Some(&"very long reason ".repeat(9)),
            Some("m"),
        );
        assert!(!failed.checked);
        assert_eq!(failed.text.chars().last(), Some('…'));
        assert!(failed.text.chars().count() <= WIDTH);
    }

    #[test]
    fn a_failed_start_shows_the_whole_error_with_its_hint() {
        let message = "127.0.0.1:11435 is taken by another program (pid 4711, ollama), so the API cannot listen there";
        let error = Error::new(Code::PortTaken, message).hint("end it, or set another address");
        let view = View::failed(&error);
        assert!(
            view.lines.iter().all(|line| line.chars().count() <= WIDTH),
            "{:?}",
            view.lines
        );
        let text = view.lines.join(" ");
        assert!(
            text.contains(message) && text.ends_with("end it, or set another address"),
            "{text}"
        );
    }

    #[test]
    fn only_a_change_of_items_replaces_the_menu() {
        let view = |states: &[(&str, TierState)]| View::running(&status_of(states), None);
        let before = view(&[("fast", TierState::Stopped)]);
        assert!(before.same_items(&view(&[("fast", TierState::Failed)])));
        assert!(!before.same_items(&view(&[
            ("fast", TierState::Stopped),
            ("heavy", TierState::Stopped)
        ])));
        assert!(!before.same_items(&View::starting()));
        let downloading = |done| View {
            download: Some(format!("Downloading m… {done} %")),
            ..before.clone()
        };
        assert!(downloading(1).same_items(&downloading(2)));
        assert!(!downloading(1).same_items(&before));
    }
}
