//! Enums whose variants are one word each.

/// Defines an enum from its variants and their words, which JSON, the configuration, arguments and sentences have.
#[macro_export]
macro_rules! words {
    (
        $(#[$($about:tt)*])*
        pub enum $name:ident {
            $($(#[$($of:tt)*])* $variant:ident = $word:tt,)+
        }
    ) => {
        $(#[$($about)*])*
        pub enum $name {
            $($(#[$($of)*])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns its word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Returns the one with this word.
            pub fn find(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }
        }
    };
}

/// Reads these enums from their words, with what is said of any other text, behind it.
macro_rules! from_word {
    ($($name:ident: $wrong:literal;)+) => {$(
        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(word: &str) -> Result<Self, String> {
                Self::find(word).ok_or_else(|| format!("\"{word}\" ") + $wrong)
            }
        }
    )+};
}

pub(crate) use from_word;
