//! Grammars of ours in the place of schemas.

use super::Fields;
use serde_json::{Map, Value, json};

/// Grammars of ours, and the constants that stand for them in schemas until llama.cpp has written its own.
#[derive(Debug)]
pub struct Placeholders {
    mark: String,
    /// GBNF by its constant.
    pub(super) grammars: Fields,
    /// How many definitions the schemas have.
    pub(super) definitions: usize,
}

impl Placeholders {
    /// Creates constants that `text` lacks. `text`: all schemas, none of which has such a constant of its own.
    pub fn absent_from(text: &str) -> Self {
        let mut marks = (0..).map(|number| format!("tierbar-form-{number}-"));
        let mark = marks.find(|mark| !text.contains(mark));
        Self {
            mark: mark.unwrap_or_default(),
            grammars: Map::new(),
            definitions: 0,
        }
    }

    /// Whether no constant stands for a grammar.
    pub fn is_empty(&self) -> bool {
        self.grammars.is_empty()
    }

    /// Returns the GBNF of each constant.
    pub fn into_grammars(self) -> Map<String, Value> {
        self.grammars
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

/// Returns a grammar with others in the place of the constants that stand for them in its schema. `grammars`: GBNF by constant.
pub fn replace_placeholders(grammar: String, grammars: &Map<String, Value>) -> String {
    grammars.iter().fold(grammar, |grammar, (constant, own)| {
        let literal = format!("\"\\\"{constant}\\\"\"");
        let own = own.as_str().unwrap_or_default();
        grammar.replace(&literal, &format!("({own})"))
    })
}
