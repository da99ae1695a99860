//! Messages of a file that form a tree, numbered anew.

use crate::{AnswerFacts, ChatMessage, Finish, Part, Role};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    rc::Rc,
};

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

/// A chat ends where it would be larger than the store takes: each answer has a copy of the reasoning before it.
pub(super) const LARGEST: usize = 17 << 20;
/// What a message counts for besides its texts.
const AROUND_A_MESSAGE: usize = 512;

/// Messages with ids from 1.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) messages: Vec<ChatMessage>,
    size: usize,
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
        self.size += AROUND_A_MESSAGE + parts.iter().map(Part::text_size).sum::<usize>();
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

    pub(super) fn is_full(&self) -> bool {
        self.size > LARGEST
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
        let mut next = children(&mut below, None, root, Vec::new());
        while let Some((id, node, mut parent, before)) = next.pop() {
            if self.is_full() {
                break;
            }
            let (place, parts) = match node {
                Node::Skipped { parts } => {
                    let parts = joined(owned(before).into_iter().chain(parts));
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
                        own = joined(owned(before).into_iter().chain(own));
                    } else if before.iter().any(is_of_tool) {
                        parent = Some(self.add(parent, Role::Assistant, owned(before), None));
                    }
                    (Some(self.add(parent, role, own, model)), Vec::new())
                }
            };
            places.insert(id, place);
            next.extend(children(&mut below, Some(id), place, parts));
        }
        let current = current.and_then(|id| places.get(id).copied().flatten());
        current.or_else(|| self.messages.last().map(|message| message.id))
    }
}

type Pending<'a> = (&'a str, Node, Option<u64>, Rc<Vec<Part>>);

/// The nodes below one, the first of them last. They share its parts, which may be large and they many.
fn children<'a>(
    below: &mut HashMap<Option<&'a str>, Vec<(&'a str, Node)>>,
    of: Option<&'a str>,
    place: Option<u64>,
    parts: Vec<Part>,
) -> Vec<Pending<'a>> {
    let parts = Rc::new(parts);
    let found = below.remove(&of).unwrap_or_default();
    let found = found.into_iter().rev();
    found
        .map(|(id, node)| (id, node, place, Rc::clone(&parts)))
        .collect()
}

/// The parts themselves for the last one that has them, and a copy for the others.
fn owned(parts: Rc<Vec<Part>>) -> Vec<Part> {
    Rc::try_unwrap(parts).unwrap_or_else(|shared| (*shared).clone())
}
