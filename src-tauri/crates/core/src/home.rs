//! Paths that begin at the user's home folder.

use std::path::PathBuf;

/// Returns a path that a user has written, in which `~` or `~/` at the beginning stands for the home folder. Without a home folder, and
/// for any other path, it is as it was written.
pub fn from_home(path: &str, home: Option<PathBuf>) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_at_the_beginning_is_the_home_folder() {
        for (path, full) in [
            ("~", "/home/u"),
            ("~/", "/home/u"),
            ("~/models/a.gguf", "/home/u/models/a.gguf"),
            ("~//a", "/home/u/a"),
            ("~someone/a", "~someone/a"),
            ("a/~/b", "a/~/b"),
            ("/a/b", "/a/b"),
            ("", ""),
        ] {
            let found = from_home(path, Some("/home/u".into()));
            assert_eq!(found, PathBuf::from(full), "{path}");
        }
        assert_eq!(from_home("~/a", None), PathBuf::from("~/a"));
    }
}
