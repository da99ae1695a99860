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
    Tier(TierId, TierCommand),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TierCommand {
    /// Loads or unloads.
    Toggle,
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
            Self::Tier(tier, TierCommand::Toggle) => format!("toggle:{tier}"),
            Self::Tier(tier, TierCommand::Pin) => format!("pin:{tier}"),
            Self::Tier(tier, TierCommand::Home) => format!("home:{tier}"),
            Self::Tier(tier, TierCommand::UnloadAfter(time)) => format!("unload-{time}:{tier}"),
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
            "toggle" => TierCommand::Toggle,
            "pin" => TierCommand::Pin,
            "home" => TierCommand::Home,
            _ => TierCommand::UnloadAfter(word.strip_prefix("unload-")?.to_owned()),
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
            TierCommand::Toggle,
            TierCommand::Pin,
            TierCommand::Home,
            TierCommand::UnloadAfter("10m".to_owned()),
        ];
        let commands = PLAIN
            .iter()
            .map(|(_, command)| command.clone())
            .chain([Command::Download("a:b".to_owned())])
            .chain(of_tier.map(|command| Command::Tier(tier.clone(), command)));
        for command in commands {
            assert_eq!(Command::parse(&command.id()), Some(command.clone()));
        }
        for text in ["", "text:why:0", "tier:fast", "toggle:"] {
            assert_eq!(Command::parse(text), None, "{text}");
        }
    }
}
