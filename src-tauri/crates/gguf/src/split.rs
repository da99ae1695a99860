//! Names of the parts of a split model.
//!
//! `llama-gguf-split` and the converters name them `NAME-00001-of-00003.gguf`, and llama.cpp finds the parts by
//! exactly that form.

use std::fmt;

const ENDING: &str = ".gguf";
/// `-00001-of-00003`
const NUMBERS: usize = 15;

/// Which part of a split model a file is, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Split {
    /// What the names of all parts begin with, up to the numbers; with the folders if the name had some.
    pub prefix: String,
    /// From 1 to `count`.
    pub number: u16,
    /// How many parts the model has; at least 1.
    pub count: u16,
}

impl Split {
    /// The name of the part of this number.
    pub fn part(&self, number: u16) -> String {
        format!("{}-{number:05}-of-{:05}{ENDING}", self.prefix, self.count)
    }

    /// The names of all parts, the first part's first.
    pub fn parts(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.count).map(|number| self.part(number))
    }
}

/// The file's own name.
impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.part(self.number))
    }
}

/// Reads the name of a part, with or without folders in front; `None` for any other name.
pub fn split_of(file_name: &str) -> Option<Split> {
    let stem = file_name.strip_suffix(ENDING)?;
    let (prefix, numbers) = stem.split_at_checked(stem.len().checked_sub(NUMBERS)?)?;
    let (number, count) = numbers.strip_prefix('-')?.split_once("-of-")?;
    let number_of = |digits: &str| -> Option<u16> {
        let five = digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
        five.then(|| digits.parse().ok())?
    };
    let (number, count) = (number_of(number)?, number_of(count)?);
    let named = !prefix.is_empty() && !prefix.ends_with(['/', '\\']);
    (named && (1..=count).contains(&number)).then(|| Split {
        prefix: prefix.to_owned(),
        number,
        count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_name_gives_the_names_of_all_parts() {
        let split = split_of("UD-Q4_K_XL/Big-235B-00002-of-00003.gguf").unwrap();
        assert_eq!(split.prefix, "UD-Q4_K_XL/Big-235B");
        assert_eq!((split.number, split.count), (2, 3));
        assert_eq!(split.to_string(), "UD-Q4_K_XL/Big-235B-00002-of-00003.gguf");
        let parts: Vec<_> = split.parts().collect();
        assert_eq!(
            parts,
            [
                "UD-Q4_K_XL/Big-235B-00001-of-00003.gguf",
                "UD-Q4_K_XL/Big-235B-00002-of-00003.gguf",
                "UD-Q4_K_XL/Big-235B-00003-of-00003.gguf",
            ]
        );
        assert_eq!(split_of("m-65535-of-65535.gguf").unwrap().number, 65535);
        assert_eq!(
            split_of("m-00001-of-00001.gguf").unwrap().parts().count(),
            1
        );
    }

    #[test]
    fn other_names_are_not_parts() {
        for name in [
            "",
            ".gguf",
            "model.gguf",
            "-00001-of-00003.gguf",
            "folder/-00001-of-00003.gguf",
            "m-00001-of-00003",
            "m-00001-of-00003.GGUF",
            "m-00001-of-00003.gguf.part",
            "m-1-of-3.gguf",
            "m-000001-of-000003.gguf",
            "m-0001-of-000003.gguf",
            "m_00001-of-00003.gguf",
            "m-00001_of_00003.gguf",
            "m-00000-of-00003.gguf",
            "m-00004-of-00003.gguf",
            "m-00000-of-00000.gguf",
            "m-00001-of-99999.gguf",
            "m-+0001-of-00003.gguf",
            "m-00001-of-+0003.gguf",
            "m-００001-of-00003.gguf",
            "ü0001-of-00003.gguf",
        ] {
            assert_eq!(split_of(name), None, "{name}");
        }
    }
}
