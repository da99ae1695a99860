//! What a route gives to its caller. Each handler declares it in its `#[utoipa::path]`, as `reach(Owner, Writes, Opens)`; without it, the
//! handler does not compile. One layer, `tierbar_edge::keys::admit`, lets callers in by it. A test compares all of them with
//! `docs/reach.md`.

use axum::http::HeaderMap;
use std::collections::BTreeMap;
use tierbar_inference::body;

/// A word of a declaration. The first says who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All that reach the server.
    Anyone,
    /// Who may use the models: an API key, the owner, and programs of this machine where no key is required.
    Inference,
    /// The token, or a browser's session.
    Owner,
    /// The token itself.
    Token,
    /// The token itself, or a one-time code.
    SignIn,
    /// Returns what is the owner's or the caller's own, such as chats, settings and answers that were kept.
    Reads,
    /// Changes or deletes it.
    Writes,
    /// Computes, downloads, or calls other servers.
    Spends,
    /// Starts programs, or an agent that may.
    Runs,
    /// The same, for some requests: the handler checks the session.
    MayRun,
    /// Gives access to others, or to Tierbar itself: to files, servers and secrets.
    Opens,
    /// The same, for some requests: the handler checks the session.
    MayOpen,
    /// Counts among the requests that are answered at once, until the end of its answer.
    Counts,
    /// Its body may be lines, which are parsed one at a time.
    Lines,
    /// Its body is larger than any other: the handler charges it part by part.
    Streams,
}

/// The words of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach(u16);

impl Reach {
    const WHO: u16 = 0b1_1111;

    /// # Panics
    /// While it is compiled, if the words do not belong together.
    pub const fn of(parts: &[Part]) -> Self {
        let (mut words, mut at) = (0, 0);
        while at < parts.len() {
            words |= 1 << parts[at] as u16;
            at += 1;
        }
        let reach = Self(words);
        assert!(
            (words & Self::WHO).count_ones() == 1,
            "a reach says who may call, once"
        );
        let widens = reach.widens()
            || reach.has(Part::MayRun)
            || reach.has(Part::MayOpen)
            || reach.has(Part::Streams);
        assert!(
            !widens || !(reach.has(Part::Anyone) || reach.has(Part::Inference)),
            "what widens access, or charges its own memory, is for the owner"
        );
        reach
    }

    pub const fn has(self, part: Part) -> bool {
        self.0 & (1 << part as u16) != 0
    }

    /// Whether it gives more than the caller has: for the token, or a session that was begun with it minutes ago.
    pub const fn widens(self) -> bool {
        self.has(Part::Runs) || self.has(Part::Opens)
    }

    /// Whether a request's body is lines, which are parsed one at a time.
    pub fn reads_lines(self, headers: &HeaderMap) -> bool {
        self.has(Part::Lines) && body::is_lines(headers)
    }
}

/// The sender of a request, which the layer puts on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    /// With the token, or a session.
    Owner,
    /// With the key of this id.
    Key(String),
    /// A program on this machine that shows neither.
    Program,
}

/// What to do where the token is required. Strangers are not told where the folder is.
pub const SEND_TOKEN: &str = "send \"Authorization: Bearer TOKEN\"; the token is in the file `token` in Tierbar's data folder";

/// The declaration of a handler, which `#[utoipa::path]` writes.
pub trait Declared {
    const METHOD: &'static str;
    const REACH: Reach;
}

/// The reach of each method of each path.
#[derive(Debug, Clone, Default)]
pub struct Reaches(BTreeMap<String, Vec<(&'static str, Reach)>>);

impl Reaches {
    pub fn add<H: Declared>(&mut self, path: String) {
        let methods = self.0.entry(path).or_default();
        methods.push((H::METHOD, H::REACH));
    }

    pub fn merge(&mut self, others: Self) {
        for (path, methods) in others.0 {
            self.0.entry(path).or_default().extend(methods);
        }
    }

    /// Returns the reach of a mounted path, if it takes the method. What takes `GET` takes `HEAD`.
    pub fn reach_of(&self, path: &str, method: &str) -> Option<Reach> {
        let methods = self.0.get(path)?;
        let of = |wanted| methods.iter().find(|(method, _)| *method == wanted);
        let found = of(method).or_else(|| of("GET").filter(|_| method == "HEAD"));
        found.map(|(_, reach)| *reach)
    }

    /// Returns the methods of a mounted path.
    pub fn methods(&self, path: &str) -> Vec<&'static str> {
        let methods = self.0.get(path).into_iter().flatten();
        methods.map(|(method, _)| *method).collect()
    }

    /// Returns each path, method and reach.
    pub fn all(&self) -> impl Iterator<Item = (&str, &'static str, Reach)> {
        self.0.iter().flat_map(|(path, methods)| {
            let of_path = methods.iter();
            of_path.map(|(method, reach)| (path.as_str(), *method, *reach))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct List;

    impl Declared for List {
        const METHOD: &'static str = "GET";
        const REACH: Reach = Reach::of(&[Part::Owner, Part::Reads]);
    }

    #[test]
    fn only_what_was_declared_has_a_reach() {
        let mut reaches = Reaches::default();
        reaches.add::<List>("/list".to_owned());
        for method in ["GET", "HEAD"] {
            assert_eq!(
                reaches.reach_of("/list", method),
                Some(List::REACH),
                "{method}"
            );
        }
        for (path, method) in [("/list", "POST"), ("/list/", "GET"), ("/", "GET")] {
            assert_eq!(reaches.reach_of(path, method), None, "{method} {path}");
        }
    }

    #[test]
    fn a_declaration_that_opens_to_others_than_the_owner_fails() {
        use Part::{Anyone, Inference, MayOpen, MayRun, Opens, Owner, Reads, Runs};
        for parts in [
            &[][..],
            &[Reads],
            &[Owner, Inference],
            &[Inference, Opens],
            &[Inference, MayOpen],
            &[Inference, Runs],
            &[Anyone, MayRun],
        ] {
            assert!(
                std::panic::catch_unwind(|| Reach::of(parts)).is_err(),
                "{parts:?}"
            );
        }
        assert!(Reach::of(&[Owner, Reads, Opens]).widens());
        assert!(!Reach::of(&[Owner, Reads, MayRun]).widens());
    }
}
