//! Which commands only read, by a list of programs and options. What is not on it asks; the list must not be wrong, and may be short.
//!
//! The words of such a command are run as they are, without a shell, so that nothing in them means more than it does here. It runs
//! without rights to write and without the network besides, so a mistake here changes nothing.

/// The options of a program that only read.
struct Program {
    name: &'static str,
    /// Single letters, which can be joined.
    letters: &'static str,
    /// Single letters that take a value, joined or as the next word.
    valued: &'static str,
    /// Whole options. One that ends in `=` takes a value there; one that ends in a space takes the next word.
    words: &'static [&'static str],
    /// How many operands it takes at most.
    operands: usize,
}

const MANY: usize = usize::MAX;

const fn program(name: &'static str, letters: &'static str) -> Program {
    Program {
        name,
        letters,
        valued: "",
        words: &[],
        operands: MANY,
    }
}

const GREP: Program = Program {
    valued: "ABCem",
    words: &[
        "--include=",
        "--exclude=",
        "--exclude-dir=",
        "--color=never",
        "--line-number",
        "--recursive",
        "--ignore-case",
        "--count",
    ],
    ..program("grep", "rRniIlLcvwxEFHhoqs")
};

const PROGRAMS: &[Program] = &[
    program("basename", "a"),
    program("cat", "nbsAETv"),
    program("cksum", ""),
    program("cmp", "ls"),
    Program {
        valued: "U",
        words: &["--brief", "--unified=", "--recursive"],
        ..program("diff", "uqrNbBwi")
    },
    program("dirname", ""),
    Program {
        valued: "d",
        words: &["--max-depth=", "--summarize", "--human-readable"],
        ..program("du", "shakmc")
    },
    program("echo", "n"),
    Program {
        name: "egrep",
        ..GREP
    },
    Program {
        name: "fgrep",
        ..GREP
    },
    program("file", "bi"),
    Program {
        words: &[
            "-name ",
            "-iname ",
            "-path ",
            "-ipath ",
            "-type ",
            "-maxdepth ",
            "-mindepth ",
            "-size ",
            "-mtime ",
            "-mmin ",
            "-newer ",
            "-not",
            "-empty",
            "-print",
            "-or",
            "-and",
        ],
        ..program("find", "")
    },
    GREP,
    Program {
        valued: "nc",
        words: &["--lines=", "--bytes="],
        ..program("head", "qv")
    },
    Program {
        words: &["--all", "--human-readable", "--recursive", "--color=never"],
        ..program("ls", "aAlhrtRSF1dip")
    },
    program("md5sum", ""),
    Program {
        operands: 0,
        ..program("pwd", "LP")
    },
    program("readlink", "fe"),
    program("realpath", ""),
    program("sha256sum", ""),
    program("stat", ""),
    Program {
        valued: "nc",
        words: &["--lines=", "--bytes="],
        ..program("tail", "qv")
    },
    Program {
        operands: 0,
        ..program("uname", "asrm")
    },
    // The second operand would be its output.
    Program {
        operands: 1,
        ..program("uniq", "cdui")
    },
    Program {
        words: &["--lines", "--words", "--bytes"],
        ..program("wc", "lwcmL")
    },
];

/// The longest line that is looked at, in bytes.
const LONGEST: usize = 2_000;

/// Returns the words of a command that only reads, or `None` if that is not certain.
pub fn read_only(line: &str) -> Option<Vec<String>> {
    let words = split_words(line)?;
    let (name, rest) = words.split_first()?;
    let program = PROGRAMS.iter().find(|program| program.name == name)?;
    program.only_reads(rest).then_some(words)
}

impl Program {
    fn only_reads(&self, words: &[String]) -> bool {
        let mut operands = 0;
        let mut all_operands = false;
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if all_operands || word == "-" || !word.starts_with('-') {
                operands += 1;
            } else if word == "--" {
                // `find` knows no end of its options.
                if self.letters.is_empty() && !self.words.is_empty() {
                    return false;
                }
                all_operands = true;
            } else if let Some(takes_next) = self.option(word) {
                if takes_next && words.next().is_none_or(|value| value.starts_with('-')) {
                    return false;
                }
            } else {
                return false;
            }
        }
        operands <= self.operands
    }

    /// Whether an option takes the next word as its value; `None` for one that is not on the list.
    fn option(&self, option: &str) -> Option<bool> {
        for listed in self.words {
            if let Some(name) = listed.strip_suffix(' ') {
                if option == name {
                    return Some(true);
                }
            } else if option == *listed || (listed.ends_with('=') && option.starts_with(listed)) {
                return Some(false);
            }
        }
        let letters = option.strip_prefix('-')?;
        if letters.starts_with('-') {
            return None;
        }
        // `-5`, of `head` and `tail`.
        let is_count = letters.bytes().all(|letter| letter.is_ascii_digit());
        if is_count && self.valued.contains('n') {
            return Some(false);
        }
        for (at, letter) in letters.char_indices() {
            if self.valued.contains(letter) {
                let value = &letters[at + letter.len_utf8()..];
                return Some(value.is_empty());
            }
            if !self.letters.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

/// Splits a line as a shell would, or returns `None` where a shell would do more than split.
fn split_words(line: &str) -> Option<Vec<String>> {
    if line.len() > LONGEST {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.trim_matches(' ').chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    let inner = letters.next()?;
                    if inner == letter {
                        break;
                    }
                    // Inside double quotes a shell still replaces.
                    let means_more = letter == '"' && "$`\\!".contains(inner);
                    if means_more || inner.is_control() {
                        return None;
                    }
                    word.push(inner);
                }
            }
            plain if plain.is_alphanumeric() || "_./,:=@%+-".contains(plain) => {
                word.get_or_insert_default().push(plain);
            }
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_only_read_are_known() {
        for line in [
            "ls",
            "ls -la src",
            "  ls -la  ",
            "cat README.md",
            "cat 'a file.txt'",
            "head -n 20 a.log",
            "head -n20 a.log",
            "tail -5 a.log",
            "grep -rn \"fn main\" src",
            "grep -r --include='*.rs' -A 3 unsafe .",
            "grep -e '-x' file",
            "find . -name '*.rs' -type f -maxdepth 3",
            "wc -l src/main.rs",
            "diff -u a b",
            "du -sh .",
            "pwd",
            "uniq -c file",
            "cat -- -file",
            "stat größe.txt",
        ] {
            // A value that looks like an option asks.
            let expected = line != "grep -e '-x' file";
            assert_eq!(read_only(line).is_some(), expected, "{line}");
        }
        assert_eq!(
            read_only("grep -rn 'a  b' \"c d\"e").unwrap(),
            ["grep", "-rn", "a  b", "c de"]
        );
        assert_eq!(read_only("cat ''").unwrap(), ["cat", ""]);
    }

    #[test]
    fn other_commands_are_not_read_only() {
        for line in [
            "",
            " ",
            "rm -rf .",
            "ls; rm x",
            "ls && rm x",
            "ls & rm x",
            "ls | sh",
            "ls > file",
            "ls >> file",
            "cat < file",
            "ls $(rm x)",
            "ls `rm x`",
            "ls \"$(rm x)\"",
            "ls \"`rm x`\"",
            "ls ${HOME}",
            "ls ~",
            "ls *",
            "ls ?",
            "ls [ab]",
            "ls {a,b}",
            "ls\nrm x",
            "ls\rrm x",
            "ls\trm",
            "ls\u{a0}x",
            "ls\u{2028}rm x",
            "ls \\\nrm x",
            "ls # comment",
            "ls !x",
            "ls 'unclosed",
            "ls \"unclosed",
            "ls '\u{1b}[2K'",
            "./ls",
            "/bin/ls",
            "bin/cat x",
            "LS",
            "A=b ls",
            "PATH=. ls",
            "ls --hyperlink",
            "ls -lZ",
            "find . -delete",
            "find . -exec rm x",
            "find . -name x -exec rm {} +",
            "find . -execdir rm",
            "find . -ok rm",
            "find . -fprint x",
            "find . -fls x",
            "find . -name",
            "find -- . -delete",
            "find . -name -delete",
            "sort -o x y",
            "sort x",
            "uniq a b",
            "uniq -c a b",
            "tee x",
            "sed -i s/a/b/ x",
            "awk x",
            "grep --file=x",
            "grep -f x y",
            "grep --devices=read x",
            "tail -f x",
            "tail --follow x",
            "diff --to-file=x y",
            "diff -l a b",
            "du --files0-from=x",
            "file -C -m x",
            "file -m x",
            "date -s 1",
            "env ls",
            "xargs ls",
            "sh -c ls",
            "sudo ls",
            "git status",
            "git log --output=x",
            "cat -",
            "pwd x",
            "uname x",
            "echo -e x",
            "head -c",
            "head -n -",
        ] {
            // Reading its own empty input is harmless.
            let expected = line == "cat -";
            assert_eq!(read_only(line).is_some(), expected, "{line:?}");
        }
        assert!(read_only(&format!("ls {}", "x".repeat(3_000))).is_none());
    }
}
