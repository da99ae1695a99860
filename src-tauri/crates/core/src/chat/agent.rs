//! A turn in which the model acts: what it may use, what it asks, and what is answered.

use super::Part;
use serde::{Deserialize, Serialize};

/// What the agent of a turn may use. What a field does not give, it does without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentOptions {
    /// The absolute path of the folder for files and commands. Without one there are neither.
    pub folder: Option<String>,
    /// Who searches the web: `duckduckgo`, or the address of a SearXNG. Without one nobody does.
    pub search: Option<String>,
    /// Whether pages of the web can be opened.
    pub pages: bool,
    /// The MCP servers whose tools it may use, by their names in the configuration. Without the field, those that are enabled.
    pub servers: Option<Vec<String>>,
    /// What is done without a question.
    pub allow: AgentAllowed,
    pub way: AgentWay,
}

/// What an agent does without a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentAllowed {
    /// Reading files of the folder, and commands of which it is certain that they only read.
    pub reading: bool,
    /// Sending words to the search provider.
    pub search: bool,
    /// Opening pages whose address the question or the search provider has given.
    pub known_pages: bool,
}

/// How the model says what it wants to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentWay {
    /// By tool calls.
    #[default]
    Calls,
    /// By one word and one line, for models that cannot call tools.
    Text,
}

/// What an agent asks before it acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConsentQuestion {
    /// Names the question in its answer.
    pub id: String,
    /// Such as `Run this command?`.
    pub title: String,
    /// All of what is to happen, with invisible characters made visible.
    pub what: String,
    /// The change of a file, as a unified diff.
    #[schema(required = true)]
    pub diff: Option<String>,
    /// Where, if it has a place.
    #[schema(required = true)]
    pub folder: Option<String>,
    /// How far it can be allowed.
    pub scopes: Vec<ConsentScope>,
}

/// How far an answer reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsentScope {
    Once,
    /// All of this kind in this folder, for this chat and at most eight hours.
    Folder,
    /// All of this kind, or all uses of this tool, for this chat and at most eight hours.
    Chat,
    /// Exactly this again, in any chat, as long as the host runs.
    Exact,
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsentAnswer {
    /// The question's.
    pub id: String,
    /// `null` refuses.
    #[schema(required = true)]
    pub allow: Option<ConsentScope>,
}

/// The part of a message for what a tool has returned.
#[must_use]
pub fn result_part(id: &str, text: &str, failed: bool) -> Part {
    Part::ToolResult {
        id: id.to_owned(),
        text: text.to_owned(),
        failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_needs_its_question() {
        let answer = |text| serde_json::from_str::<ConsentAnswer>(text);
        let refused = answer(r#"{"id": "a", "allow": null}"#).unwrap();
        assert_eq!(refused.allow, None);
        let once = answer(r#"{"id": "a", "allow": "once"}"#).unwrap();
        assert_eq!(once.allow, Some(ConsentScope::Once));
        for wrong in [
            r#"{"allow": "once"}"#,
            r#"{"id": "a", "allow": "always"}"#,
            r#"{"id": "a", "allow": true}"#,
            r#"{"id": "a", "allow": "once", "all": true}"#,
        ] {
            assert!(answer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_agent_without_options_may_use_nothing() {
        let options: AgentOptions = serde_json::from_str("{}").unwrap();
        assert_eq!(options, AgentOptions::default());
        assert!(!options.allow.reading && options.folder.is_none());
    }

    #[test]
    fn a_result_is_a_part() {
        let part = result_part("a", "found", false);
        assert!(matches!(part, Part::ToolResult { .. }), "{part:?}");
    }
}
