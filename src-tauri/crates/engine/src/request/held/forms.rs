//! Grammars of ours in the place of schemas.

use super::Fields;
use serde_json::{Map, Value, json};

/// Grammars of ours, and the constants that stand for them in schemas until llama.cpp has written its own.
#[derive(Debug)]
pub(in crate::request) struct Forms {
    mark: String,
    /// GBNF by its constant.
    pub(in crate::request) grammars: Fields,
    /// How many definitions the schemas have.
    pub(super) definitions: usize,
}

impl Forms {
    /// `text`: all schemas, none of which has such a constant of its own.
    pub(in crate::request) fn beside(text: &str) -> Self {
        let mut marks = (0..).map(|number| format!("tierbar-form-{number}-"));
        let mark = marks.find(|mark| !text.contains(mark));
        Self {
            mark: mark.unwrap_or_default(),
            grammars: Map::new(),
            definitions: 0,
        }
    }

    pub(in crate::request) fn is_empty(&self) -> bool {
        self.grammars.is_empty()
    }

    pub(super) fn constant(&mut self, grammar: String) -> Value {
        let grammar = Value::from(grammar);
        let known = self.grammars.iter().find(|(_, known)| **known == grammar);
        let name = known.map(|(name, _)| name.clone());
        let name = name.unwrap_or_else(|| {
            let name = format!("{}{}", self.mark, self.grammars.len());
            self.grammars.insert(name.clone(), grammar);
            name
        });
        json!({"const": name})
    }
}
