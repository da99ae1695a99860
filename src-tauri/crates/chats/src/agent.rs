//! A turn in which the model acts: what it may use, what it asks, and what is answered.

pub use tierbar_core::first_steps::{AgentWay, measured_way};

use super::Part;
use serde::{Deserialize, Serialize};
use tierbar_core::{ModelId, TierId};

/// What the agent of a turn may use. What a field does not give, it does without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentOptions {
    /// The absolute path of the folder for files and commands, which may begin with `~/`. Without one there are neither.
    pub folder: Option<String>,
    /// The web search engine: `duckduckgo`, `brave` (with the secret `brave-search`), or a SearXNG server's address. Omit to disable
    /// web search.
    pub search: Option<String>,
    /// Whether pages of the web can be opened.
    pub pages: bool,
    /// Which of the user's documents can be searched: `true` for all, or a list of collections. Without it none can.
    pub documents: Option<AgentDocuments>,
    /// The MCP servers whose tools it may use, by their names in the configuration. Without the field, those that are enabled.
    pub servers: Option<Vec<String>>,
    /// What is done without a question.
    pub allow: AgentAllowed,
    pub way: AgentWay,
}

/// Which documents an agent can search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged, expecting = "`documents` is true, or a list of collections")]
pub enum AgentDocuments {
    /// All of them, or none.
    All(bool),
    /// Those of the collections with these names.
    Collections(Vec<String>),
}

/// What an agent does without a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentAllowed {
    /// Reading files of the folder and the documents, and commands of which it is certain that they only read.
    pub reading: bool,
    /// Sending words to the search provider.
    pub search: bool,
    /// Opening pages whose address the question or the search provider has given.
    pub known_pages: bool,
}

/// A tier that answers chats, and what is known of its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTier {
    pub tier: TierId,
    pub model: Option<ModelId>,
    /// Whether its chat template has tools; `None` if that is not known, as of another server's.
    pub knows_tools: Option<bool>,
    /// The way that it was measured to be better in.
    pub measured: Option<AgentWay>,
}

impl AgentTier {
    fn way(&self) -> AgentWay {
        match (self.measured, self.knows_tools) {
            (Some(AgentWay::Text), _) | (None, Some(false)) => AgentWay::Text,
            _ => AgentWay::Calls,
        }
    }
}

/// Returns the way for a tier or model by its name, never `Auto`. For any other name, such as `auto` or a chain's, it is `Text` only if
/// that is the way of all tiers, because requests with tools are routed to a tier that calls them.
pub fn way_of(name: &str, tiers: &[AgentTier]) -> AgentWay {
    let is_named = |tier: &&AgentTier| {
        let model = tier.model.as_ref();
        tier.tier.as_str() == name || model.is_some_and(|model| model.as_str() == name)
    };
    if let Some(named) = tiers.iter().find(is_named) {
        return named.way();
    }
    if !tiers.is_empty() && tiers.iter().all(|tier| tier.way() == AgentWay::Text) {
        AgentWay::Text
    } else {
        AgentWay::Calls
    }
}

/// What kind of act an agent asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsentAct {
    Command,
    Read,
    Write,
    Search,
    Page,
    Documents,
    Tool,
}

/// What an agent asks before it acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConsentQuestion {
    /// Names the question in its answer.
    pub id: String,
    pub act: ConsentAct,
    /// Such as `Run this command?`.
    pub title: String,
    /// Its length and what is unusual in it, such as `122 lines, lines folded: 119`. It belongs where the answer is given.
    pub summary: String,
    /// All of what is to happen, with misleading characters as their codes, and with long blanks and repeated lines folded.
    pub what: String,
    /// The change of a file, as a unified diff.
    pub diff: Option<String>,
    /// Where, if it has a place.
    pub folder: Option<String>,
    /// How far it can be allowed.
    pub scopes: Vec<ConsentScope>,
}

/// How far an answer reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsentScope {
    Once,
    /// All of this kind in this folder, for this chat and at most eight hours: all commands, without the network, which can change hidden
    /// files such as `.envrc` and Git hooks, too; all reading; or all changes but of hidden files.
    Folder,
    /// All of this kind, or all uses of this tool, for this chat and at most eight hours.
    Chat,
    /// Exactly this again, in this folder and in any chat, until it is revoked. It is stored.
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

/// Something that an agent may do without asking again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentGrant {
    pub id: String,
    /// Such as `Run all commands`.
    pub title: String,
    /// The command, the tool or whom it is for, with invisible characters made visible.
    pub what: Option<String>,
    /// Where, if it has a place.
    pub folder: Option<String>,
    /// The chat or the run in which it holds; `null`: in each.
    pub chat: Option<String>,
    /// In seconds since 1970.
    pub since: u64,
    /// In seconds since 1970; `null`: until it is revoked.
    pub until: Option<u64>,
}

/// A run of an agent whose changes of files can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentRun {
    /// That of its turn, or of a program's run.
    pub id: String,
    /// The chat and the message of its answer; `null`: a program's run.
    pub chat: Option<String>,
    pub message: Option<u64>,
    pub folder: String,
    /// When it last changed a file, in seconds since 1970.
    pub at: u64,
    /// What it changed, relative to the folder.
    pub files: Vec<String>,
}

/// The part of a message for what a tool has returned.
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

    fn tier(tier: &str, model: &str, knows_tools: Option<bool>) -> AgentTier {
        AgentTier {
            tier: TierId::new(tier).unwrap(),
            model: Some(ModelId(model.to_owned())),
            knows_tools,
            measured: None,
        }
    }

    #[test]
    fn a_measured_model_goes_as_measured_others_by_their_template() {
        let calls = Some(AgentWay::Calls);
        let text = Some(AgentWay::Text);
        for (measured, knows_tools, way) in [
            (None, Some(true), AgentWay::Calls),
            (None, Some(false), AgentWay::Text),
            (None, None, AgentWay::Calls),
            (calls, Some(false), AgentWay::Calls),
            (text, Some(true), AgentWay::Text),
            (text, None, AgentWay::Text),
        ] {
            let tier = AgentTier {
                measured,
                ..tier("fast", "tiny", knows_tools)
            };
            assert_eq!(way_of("fast", &[tier]), way, "{measured:?} {knows_tools:?}");
        }
    }

    #[test]
    fn a_name_goes_the_way_of_its_tier() {
        let mut tiers = [
            tier("fast", "tiny", Some(false)),
            tier("primary", "large", Some(true)),
        ];
        assert_eq!(way_of("fast", &tiers), AgentWay::Text);
        assert_eq!(way_of("tiny", &tiers), AgentWay::Text);
        assert_eq!(way_of("large", &tiers), AgentWay::Calls);
        assert_eq!(way_of("auto", &tiers), AgentWay::Calls);
        assert_eq!(way_of("auto", &tiers[..1]), AgentWay::Text);
        assert_eq!(way_of("auto", &[]), AgentWay::Calls);
        let unknown = tier("cloud", "theirs", None);
        let with_cloud = [tiers[0].clone(), unknown];
        assert_eq!(way_of("auto", &with_cloud), AgentWay::Calls);
        tiers[1].measured = Some(AgentWay::Text);
        assert_eq!(way_of("auto", &tiers), AgentWay::Text);
    }

    #[test]
    fn documents_are_all_or_named() {
        let read = |text| serde_json::from_str::<AgentOptions>(text).map(|read| read.documents);
        let all = read(r#"{"documents": true}"#).unwrap();
        assert_eq!(all, Some(AgentDocuments::All(true)));
        let named = read(r#"{"documents": ["Papers"]}"#).unwrap();
        let papers = vec!["Papers".to_owned()];
        assert_eq!(named, Some(AgentDocuments::Collections(papers)));
        let error = read(r#"{"documents": "Papers"}"#).unwrap_err();
        assert!(
            error.to_string().contains("a list of collections"),
            "{error}"
        );
    }

    #[test]
    fn a_tool_result_becomes_a_message_part() {
        let part = result_part("a", "found", false);
        assert!(matches!(part, Part::ToolResult { .. }), "{part:?}");
    }
}
