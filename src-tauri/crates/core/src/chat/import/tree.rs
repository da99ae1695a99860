//! Messages of a file that form a tree, numbered anew.

use crate::chat::{AnswerFacts, ChatMessage, Finish, Part, Role};
use std::collections::{HashMap, HashSet};

/// What a node of a file's tree is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Message {
        role: Role,
        parts: Vec<Part>,
        model: Option<String>,
    },
    /// None of the conversation: what follows from it follows from the node before it. The reasoning, if any, belongs to the next answer.
    Skipped { reasoning: String },
}

impl Node {
    pub(super) fn skipped() -> Self {
        Self::Skipped {
            reasoning: String::new(),
        }
    }
}

/// Messages with ids from 1.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) messages: Vec<ChatMessage>,
}

impl Tree {
    pub(super) fn add(
        &mut self,
        parent: Option<u64>,
        role: Role,
        parts: Vec<Part>,
        model: Option<String>,
    ) -> u64 {
        let id = self.messages.len() as u64 + 1;
        let finish = (role == Role::Assistant).then_some(Finish::Stop);
        self.messages.push(ChatMessage {
            id,
            parent,
            role,
            parts,
            answer: AnswerFacts {
                model,
                finish,
                ..AnswerFacts::default()
            },
        });
        id
    }

    /// Adds nodes with their ids and those of their parents, the roots below `root`. Returns the message that `current` is or follows
    /// from; without one, the last that was added.
    pub(super) fn grow<'a>(
        &mut self,
        root: Option<u64>,
        nodes: Vec<(&'a str, Option<&'a str>, Node)>,
        current: Option<&'a str>,
    ) -> Option<u64> {
        let known: HashSet<&str> = nodes.iter().map(|(id, ..)| *id).collect();
        let mut below: HashMap<Option<&'a str>, Vec<(&'a str, Node)>> = HashMap::new();
        for (id, parent, node) in nodes {
            let parent = parent.filter(|parent| known.contains(parent));
            below.entry(parent).or_default().push((id, node));
        }
        // Each node is taken once, so that even a damaged tree ends.
        let mut places: HashMap<&str, Option<u64>> = HashMap::new();
        let mut next = children(&mut below, None, root, "");
        while let Some((id, node, parent, before)) = next.pop() {
            let (place, reasoning) = match node {
                Node::Skipped { reasoning } => (parent, before + &reasoning),
                Node::Message {
                    role,
                    mut parts,
                    model,
                } => {
                    let is_answer = role == Role::Assistant;
                    if is_answer && !before.is_empty() {
                        parts.insert(0, Part::Reasoning { text: before });
                    }
                    (Some(self.add(parent, role, parts, model)), String::new())
                }
            };
            places.insert(id, place);
            next.extend(children(&mut below, Some(id), place, &reasoning));
        }
        let current = current.and_then(|id| places.get(id).copied().flatten());
        current.or_else(|| self.messages.last().map(|message| message.id))
    }
}

type Pending<'a> = (&'a str, Node, Option<u64>, String);

/// The nodes below one, the first of them last.
fn children<'a>(
    below: &mut HashMap<Option<&'a str>, Vec<(&'a str, Node)>>,
    of: Option<&'a str>,
    place: Option<u64>,
    reasoning: &str,
) -> Vec<Pending<'a>> {
    let found = below.remove(&of).unwrap_or_default();
    let found = found.into_iter().rev();
    found
        .map(|(id, node)| (id, node, place, reasoning.to_owned()))
        .collect()
}
