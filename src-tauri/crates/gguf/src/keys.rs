//! A header's values as the architecture names them.

use crate::{
    fault::{Fault, invalid},
    header::{Array, HeaderValue},
    template::{self, Template},
};
use std::{collections::HashMap, fmt::Display};

#[derive(Debug, Clone, Copy)]
pub(crate) struct HeaderKeys<'a> {
    pairs: &'a HashMap<String, HeaderValue>,
    pub(crate) architecture: &'a str,
}

impl<'a> HeaderKeys<'a> {
    pub(crate) fn new(pairs: &'a HashMap<String, HeaderValue>) -> Result<Self, Fault> {
        match pairs.get("general.architecture") {
            Some(HeaderValue::Text(architecture)) if !architecture.is_empty() => Ok(Self {
                pairs,
                architecture,
            }),
            _ => invalid("its header names no architecture"),
        }
    }

    /// By the full name of the key.
    pub(crate) fn get(&self, key: &str) -> Option<&'a HeaderValue> {
        self.pairs.get(key)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        match self.get(key) {
            Some(HeaderValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// What people call the model.
    pub(crate) fn name(&self) -> Option<String> {
        self.text("general.name")
            .filter(|name| !name.trim().is_empty())
            .map(str::to_owned)
    }

    /// The default chat template and those for a purpose.
    pub(crate) fn templates(&self) -> impl Iterator<Item = Template> {
        self.pairs
            .iter()
            .filter(|(key, _)| template::is_key(key))
            .filter_map(|(_, value)| match value {
                HeaderValue::Template(template) => Some(*template),
                _ => None,
            })
    }

    /// By the name behind the architecture's: `block_count` for `llama.block_count`.
    pub(crate) fn own(&self, key: &str) -> Option<&'a HeaderValue> {
        self.get(&self.own_name(key))
    }

    fn own_name(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<u32>, Fault> {
        match self.own(key) {
            None => Ok(None),
            Some(HeaderValue::Integer(number)) => self.in_range(key, *number).map(Some),
            Some(_) => self.wrong(key, "is not a number"),
        }
    }

    pub(crate) fn own_text(&self, key: &str) -> Option<&'a str> {
        self.text(&self.own_name(key))
    }

    /// Returns a floating-point number. llama.cpp does not accept an integer here.
    pub(crate) fn float(&self, key: &str) -> Option<f64> {
        match self.own(key) {
            Some(HeaderValue::Float(number)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn required(&self, key: &str) -> Result<u32, Fault> {
        let missing = || invalid(format!("its header has no {}", self.own_name(key)));
        self.number(key)?.map_or_else(missing, Ok)
    }

    /// The numbers of a short list.
    pub(crate) fn list(&self, key: &str) -> Option<&'a [i128]> {
        match self.own(key) {
            Some(HeaderValue::Array(array)) => array.elements.as_deref(),
            _ => None,
        }
    }

    /// One number for all layers, or an array with one for each.
    pub(crate) fn per_layer(&self, key: &str, layers: u32) -> Result<Option<Vec<u32>>, Fault> {
        let Some(HeaderValue::Array(Array {
            length, elements, ..
        })) = self.own(key)
        else {
            return Ok(self
                .number(key)?
                .map(|number| vec![number; layers as usize]));
        };
        match elements {
            Some(elements) if *length == u64::from(layers) => elements
                .iter()
                .map(|&number| self.in_range(key, number))
                .collect::<Result<_, _>>()
                .map(Some),
            _ => self.wrong(key, format!("has {length} values for {layers} layers")),
        }
    }

    fn in_range(&self, key: &str, number: i128) -> Result<u32, Fault> {
        u32::try_from(number)
            .or_else(|_| self.wrong(key, format!("is {number}, which is out of range")))
    }

    /// Fails over a value: `why` says what it is.
    pub(crate) fn wrong<T>(&self, key: &str, why: impl Display) -> Result<T, Fault> {
        invalid(format!("its {}.{key} {why}", self.architecture))
    }
}
