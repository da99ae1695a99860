//! A choice in text: one word says what a small model wants to do next. Works where tool calls in JSON do not, such as at 2-bit
//! quants.
//!
//! The word is constrained by a grammar where the engine has grammars. Where it is free text, the parser is tolerant, and an answer
//! that it cannot read is never taken for chat: the question is put again with the grammar, and then once more in other words.

use serde::{Deserialize, Serialize};
use tierbar_chats::thinking::without_thoughts;

tierbar_core::words! {
    /// What the model wants to do next.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum Route {
        Search = "search",
        Shell = "shell",
        Files = "files",
        Documents = "documents",
        /// Answer.
        Chat = "chat",
    }
}

impl Route {
    fn description(self) -> &'static str {
        match self {
            Self::Search => {
                "search the web, or open a page: news, prices, weather, facts that change"
            }
            Self::Shell => {
                "run a command on this computer: system, processes, tests, Git, counting"
            }
            Self::Files => "read, list or write files of the folder",
            Self::Documents => "look into the user's own documents and papers",
            Self::Chat => "answer now, from what is known or was found",
        }
    }

    /// Other words for it that models use.
    fn synonyms(self) -> &'static [&'static str] {
        match self {
            Self::Search => &[
                "search",
                "web",
                "websearch",
                "web_search",
                "internet",
                "browse",
            ],
            Self::Shell => &["shell", "terminal", "bash", "command"],
            Self::Files => &["files", "file"],
            Self::Documents => &["documents", "document", "docs"],
            Self::Chat => &["chat", "answer"],
        }
    }
}

/// The system prompt of the question for the next route. `routes`: those that there are.
pub fn prompt(routes: &[Route]) -> String {
    let mut prompt =
        "You choose the next step for the user's request. Answer with one word and nothing else.\n"
            .to_owned();
    for route in routes {
        prompt += &format!("{} = {}\n", route.as_str(), route.description());
    }
    prompt.push_str("If what is needed has been found already, answer: chat");
    prompt
}

/// The last line of the question for the next route.
pub fn question(routes: &[Route]) -> String {
    let words: Vec<_> = routes.iter().map(|route| route.as_str()).collect();
    format!("What is the next step? One word: {}.", words.join(", "))
}

/// A grammar of llama.cpp (GBNF) for one of the words.
pub fn grammar(routes: &[Route]) -> String {
    let words: Vec<_> = routes
        .iter()
        .map(|route| format!("\"{}\"", route.as_str()))
        .collect();
    format!("root ::= {}", words.join(" | "))
}

/// Reads an answer. `None`, if it names no route that there is, or more than one.
pub fn parse(answer: &str, routes: &[Route]) -> Option<Route> {
    let answer = without_thoughts(answer).to_lowercase();
    let words = || {
        answer
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .filter(|word| !word.is_empty())
    };
    let named = |is_meant: fn(Route, &str) -> bool| -> Vec<Route> {
        let routes = routes.iter().copied();
        routes
            .filter(|&route| words().any(|word| is_meant(route, word)))
            .collect()
    };
    // The exact words win over others for the same.
    let mut found = named(|route, word| route.as_str() == word);
    if found.is_empty() {
        found = named(|route, word| route.synonyms().contains(&word));
    }
    match *found {
        [route] => Some(route),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(answer: &str) -> Option<Route> {
        parse(answer, &Route::ALL)
    }

    #[test]
    fn answers_are_read_with_tolerance() {
        for (answer, route) in [
            ("search", Route::Search),
            ("search.", Route::Search),
            ("Search!", Route::Search),
            ("  SHELL\n", Route::Shell),
            ("**files**", Route::Files),
            ("`shell`", Route::Shell),
            ("\"documents\"", Route::Documents),
            ("Answer: search", Route::Search),
            ("The answer is shell.", Route::Shell),
            ("search search search", Route::Search),
            ("{\"route\": \"files\"}", Route::Files),
            (
                "<think>shell or search? chat?</think>\nsearch",
                Route::Search,
            ),
            ("files\n\nExplanation: read it", Route::Files),
            ("web_search", Route::Search),
            ("bash", Route::Shell),
            ("→ documents", Route::Documents),
            ("chat", Route::Chat),
            ("Answer.", Route::Chat),
        ] {
            assert_eq!(parsed(answer), Some(route), "{answer:?}");
        }
    }

    #[test]
    fn what_names_no_route_is_not_chat() {
        for answer in [
            "",
            "...",
            "I don't know",
            "search or shell",
            "Not chat, but search",
            "research",
            "shellfish",
            "<think>search",
            "suche",
            "1",
            "yes",
        ] {
            assert_eq!(parsed(answer), None, "{answer:?}");
        }
        let some = [Route::Shell, Route::Chat];
        assert_eq!(parse("search", &some), None);
        assert_eq!(parse("search, then shell", &some), Some(Route::Shell));
    }

    #[test]
    fn the_grammar_allows_the_words_alone() {
        assert_eq!(
            grammar(&Route::ALL),
            r#"root ::= "search" | "shell" | "files" | "documents" | "chat""#
        );
        for route in Route::ALL {
            assert_eq!(parsed(route.as_str()), Some(route));
            assert!(prompt(&Route::ALL).contains(&format!("\n{} = ", route.as_str())));
        }
        let some = [Route::Search, Route::Chat];
        assert!(!prompt(&some).contains("shell"));
        assert_eq!(
            question(&some),
            "What is the next step? One word: search, chat."
        );
    }
}
