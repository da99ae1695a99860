//! What of a folder is not searched, and why.

use super::{DEEPEST, MOST_FILES};
use std::collections::BTreeMap;

/// Why a file or folder is left out. Hidden ones, links and files of other kinds are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::documents) enum Why {
    IgnoredFile,
    IgnoredFolder,
    /// A folder.
    Generated,
    Lock,
    Minified,
    /// A name that is not UTF-8.
    Unnamed,
    /// A folder.
    TooDeep,
    TooMany,
    FileInCloud,
    FolderInCloud,
}

/// How many, for each reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut(BTreeMap<Why, u64>);

impl LeftOut {
    pub(super) fn note(&mut self, why: Why) {
        *self.0.entry(why).or_default() += 1;
    }

    /// Such as `Not searched: 2 folders (.gitignore), 1 lock file`.
    pub(super) fn sentence(&self) -> Option<String> {
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|(why, count)| why.words(*count))
            .collect();
        (!parts.is_empty()).then(|| format!("Not searched: {}", parts.join(", ")))
    }
}

impl Why {
    fn words(self, count: u64) -> String {
        let s = if count == 1 { "" } else { "s" };
        match self {
            Self::IgnoredFile => format!("{count} file{s} (.gitignore)"),
            Self::IgnoredFolder => format!("{count} folder{s} (.gitignore)"),
            Self::Generated => format!("{count} folder{s} that programs have generated"),
            Self::Lock => format!("{count} lock file{s}"),
            Self::Minified => format!("{count} minified file{s}"),
            Self::Unnamed => format!("{count} file{s} whose names are not UTF-8"),
            Self::TooDeep => format!("{count} folder{s} more than {DEEPEST} levels deep"),
            Self::TooMany => format!("{count} file{s} beyond the first {MOST_FILES}"),
            Self::FileInCloud => format!("{count} file{s} in iCloud only"),
            Self::FolderInCloud => format!("{count} folder{s} in iCloud only"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_named_with_its_number() {
        let mut left_out = LeftOut::default();
        assert_eq!(left_out.sentence(), None);
        for why in [Why::TooMany, Why::IgnoredFile, Why::Lock, Why::IgnoredFile] {
            left_out.note(why);
        }
        assert_eq!(
            left_out.sentence().unwrap(),
            "Not searched: 2 files (.gitignore), 1 lock file, 1 file beyond the first 50000"
        );
    }
}
