//! Messages of a file that form a tree, numbered anew.

use crate::{AnswerFacts, ChatMessage, Finish, Part, Role};
use std::collections::{HashMap, HashSet, VecDeque};

/// What a node of a file's tree is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Message {
        role: Role,
        parts: Vec<Part>,
        model: Option<String>,
    },
    /// No message of its own: what follows from it follows from the node before it. Its parts, such as reasoning and calls of tools,
    /// belong to the next answer.
    Skipped { parts: Vec<Part> },
}

impl Node {
    pub(super) fn skipped() -> Self {
        Self::Skipped { parts: Vec::new() }
    }
}

/// Returns parts with the reasoning of neighbours joined.
pub(super) fn joined(parts: impl IntoIterator<Item = Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(Part::Reasoning { text: before }), Part::Reasoning { text }) => {
                before.push_str(&text);
            }
            (_, part) => joined.push(part),
        }
    }
    joined
}

fn is_of_tool(part: &Part) -> bool {
    matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. })
}

/// Gives calls without an id one, and results without one that of the oldest call before them that has none.
fn pair(parts: &mut [Part]) {
    let mut waiting: VecDeque<String> = VecDeque::new();
    for (number, part) in parts.iter_mut().enumerate() {
        match part {
            Part::ToolCall { id, .. } => {
                if id.is_empty() {
                    *id = format!("call-{number}");
                }
                waiting.push_back(id.clone());
            }
            Part::ToolResult { id, .. } if id.is_empty() => {
                *id = waiting.pop_front().unwrap_or_default();
            }
            Part::ToolResult { id, .. } => waiting.retain(|waiting| waiting != id),
            _ => {}
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
        mut parts: Vec<Part>,
        model: Option<String>,
    ) -> u64 {
        pair(&mut parts);
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
        let mut next = children(&mut below, None, root, &[]);
        while let Some((id, node, mut parent, before)) = next.pop() {
            let (place, parts) = match node {
                Node::Skipped { parts } => {
                    let parts = joined(before.into_iter().chain(parts));
                    if !below.contains_key(&Some(id)) && parts.iter().any(is_of_tool) {
                        // No answer follows.
                        let added = self.add(parent, Role::Assistant, parts, None);
                        (Some(added), Vec::new())
                    } else {
                        (parent, parts)
                    }
                }
                Node::Message { role, parts, model } => {
                    let mut own = parts;
                    if role == Role::Assistant {
                        own = joined(before.into_iter().chain(own));
                    } else if before.iter().any(is_of_tool) {
                        parent = Some(self.add(parent, Role::Assistant, before, None));
                    }
                    (Some(self.add(parent, role, own, model)), Vec::new())
                }
            };
            places.insert(id, place);
            next.extend(children(&mut below, Some(id), place, &parts));
        }
        let current = current.and_then(|id| places.get(id).copied().flatten());
        current.or_else(|| self.messages.last().map(|message| message.id))
    }
}

type Pending<'a> = (&'a str, Node, Option<u64>, Vec<Part>);

/// The nodes below one, the first of them last.
fn children<'a>(
    below: &mut HashMap<Option<&'a str>, Vec<(&'a str, Node)>>,
    of: Option<&'a str>,
    place: Option<u64>,
    parts: &[Part],
) -> Vec<Pending<'a>> {
    let found = below.remove(&of).unwrap_or_default();
    let found = found.into_iter().rev();
    found
        .map(|(id, node)| (id, node, place, parts.to_vec()))
        .collect()
}
