//! What the items of the menu do, and the ids that they have there.

use tierbar_core::TierId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Chat,
    Models,
    Monitor,
    /// Shows what happened, and why.
    Why,
    Settings,
    CopyAddress,
    /// Pauses or resumes.
    Pause,
    Login,
    /// Starts the host again.
    Retry,
    Folder,
    Quit,
    /// Shows the download of this id.
    Download(String),
    /// Loads or unloads a tier.
    Toggle(TierId),
    /// Changes a setting of a tier.
    Tier(TierId, TierSetting),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TierSetting {
    /// Keeps it loaded, or no longer.
    Pin,
    /// Makes it the home tier, or no longer.
    Home,
    /// Unloads it after this time without a request, as the configuration writes it.
    UnloadAfter(String),
}

static PLAIN: [(&str, Command); 11] = [
    ("chat", Command::Chat),
    ("models", Command::Models),
    ("monitor", Command::Monitor),
    ("why", Command::Why),
    ("settings", Command::Settings),
    ("copy-address", Command::CopyAddress),
    ("pause", Command::Pause),
    ("login", Command::Login),
    ("retry", Command::Retry),
    ("folder", Command::Folder),
    ("quit", Command::Quit),
];

impl Command {
    pub(crate) fn id(&self) -> String {
        match self {
            Self::Download(id) => format!("download:{id}"),
            Self::Toggle(tier) => format!("toggle:{tier}"),
            Self::Tier(tier, TierSetting::Pin) => format!("pin:{tier}"),
            Self::Tier(tier, TierSetting::Home) => format!("home:{tier}"),
            Self::Tier(tier, TierSetting::UnloadAfter(time)) => format!("unload-{time}:{tier}"),
            plain => PLAIN
                .iter()
                .find(|(_, command)| command == plain)
                .map_or_else(String::new, |(id, _)| (*id).to_owned()),
        }
    }

    /// Returns the command of an item; `None` for text.
    pub(crate) fn parse(id: &str) -> Option<Self> {
        let Some((word, rest)) = id.split_once(':') else {
            let (_, command) = PLAIN.iter().find(|(plain, _)| *plain == id)?;
            return Some(command.clone());
        };
        let command = match word {
            "download" => return Some(Self::Download(rest.to_owned())),
            "toggle" => return Some(Self::Toggle(TierId::new(rest).ok()?)),
            "pin" => TierSetting::Pin,
            "home" => TierSetting::Home,
            _ => TierSetting::UnloadAfter(word.strip_prefix("unload-")?.to_owned()),
        };
        Some(Self::Tier(TierId::new(rest).ok()?, command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_found_by_its_id() {
        let tier = TierId::new("fast").unwrap();
        let of_tier = [
            TierSetting::Pin,
            TierSetting::Home,
            TierSetting::UnloadAfter("10m".to_owned()),
        ];
        let commands = PLAIN
            .iter()
            .map(|(_, command)| command.clone())
            .chain([Command::Download("a:b".to_owned())])
            .chain([Command::Toggle(tier.clone())])
            .chain(of_tier.map(|command| Command::Tier(tier.clone(), command)));
        for command in commands {
            assert_eq!(Command::parse(&command.id()), Some(command.clone()));
        }
        for text in ["", "text:why:0", "tier:fast", "toggle:"] {
            assert_eq!(Command::parse(text), None, "{text}");
        }
    }
}
