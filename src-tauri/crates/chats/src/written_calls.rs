//! Calls that a model writes as the text of its answer: as JSON, in a code block or between tags.

mod arguments;

pub use arguments::{missing_argument, parse_arguments, to_wanted_types};

use crate::thinking::{split, without_thoughts};
use serde::{
    Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use std::{fmt, iter};
use tierbar_core::json;

/// The tags that stand around calls.
const TAGS: [&str; 8] = [
    "tool_call",
    "tool_calls",
    "tool",
    "tools",
    "function_call",
    "function_calls",
    "function",
    "functions",
];
const FENCE: &str = "```";
/// A function that is named in its tag: what precedes and follows the name, and what ends the function.
const FUNCTIONS: [(&str, &str, &str); 3] = [
    ("<function=", ">", "</function>"),
    ("<function name=\"", "\">", "</function>"),
    ("<invoke name=\"", "\">", "</invoke>"),
];
/// What precedes and follows the name of one of its arguments.
const PARAMETERS: [(&str, &str); 2] = [("<parameter=", ">"), ("<parameter name=\"", "\">")];
/// The keys of a call's JSON: of its name,
const NAMES: [&str; 4] = ["name", "function", "tool", "tool_name"];
/// of its arguments,
const ARGUMENTS: [&str; 5] = ["arguments", "parameters", "args", "params", "input"];
/// and others. The calls of an answer may be in a list of their own.
const TYPE: &str = "type";
const ID: &str = "id";
const CALLS: &str = "tool_calls";
/// The longest name of a code block's language.
const LANGUAGE: usize = 20;
/// Quotation marks of prose, which some models put around the texts of JSON,
const CURLY_BEGINS: [char; 3] = ['“', '”', '„'];
const CURLY_ENDS: [char; 2] = ['”', '“'];
/// and the full-width signs between them.
const COLON: char = '：';
const COMMA: char = '，';
/// A call names its tool within so many bytes: an answer in JSON may begin like one, and is not held back for longer.
const LONGEST_HEAD: usize = 16 << 10;
/// The longest text that is held back, and read as calls.
const LONGEST: usize = 1 << 20;
/// A text that comes in pieces is read anew with each up to so many bytes, and then whenever it has grown by an eighth.
const SHORT: usize = 1 << 10;
const GROWTH: usize = 8;

/// Returns whether a text that begins so may turn out to be a call of a tool, so that it is not an answer yet. `tools`: as in
/// [`written_calls`].
pub fn may_begin_call(text: &str, tools: &[Value]) -> bool {
    let head = &text[..text.floor_char_boundary(LONGEST_HEAD)];
    let is_held = match begins_as(undecorated(head), tools) {
        Beginning::Named => text.len() <= LONGEST,
        Beginning::Unclear => head.len() == text.len(),
        Beginning::Text => false,
    };
    is_held && !has_words_behind(undecorated(text))
}

/// A text that comes in pieces and may turn out to be a call. Reading all of it with each piece would take quadratic time.
#[derive(Debug, Default)]
pub struct GrowingText {
    /// How much of it had come when it was read last.
    read: usize,
}

impl GrowingText {
    /// As [`may_begin_call`], for the text as far as it has come. What is no call may be noticed a few pieces later.
    pub fn may_begin_call(&mut self, text: &str, tools: &[Value]) -> bool {
        !self.is_due(text.len()) || may_begin_call(text, tools)
    }

    fn is_due(&mut self, length: usize) -> bool {
        let growth = if self.read > SHORT {
            self.read / GROWTH
        } else {
            0
        };
        let is_due = !(self.read..self.read + growth).contains(&length);
        if is_due {
            self.read = length;
        }
        is_due
    }
}

/// Whether there is prose behind the values that a text begins with.
fn has_words_behind(text: &str) -> bool {
    if !text.starts_with(['{', '[']) {
        return false;
    }
    let is_between = |letter: char| letter.is_whitespace() || "]},;".contains(letter);
    let straight = straightened(text);
    let mut rest = straight.as_deref().unwrap_or(text);
    while rest.starts_with(['{', '[']) {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let Some(Ok(_)) = values.next() else {
            return false;
        };
        rest = undecorated(rest[values.byte_offset()..].trim_start_matches(is_between));
    }
    !rest.is_empty() && !rest.starts_with(['<', '`'])
}

/// What a text may be, by its beginning.
enum Beginning {
    /// A call of a tool, if it is a call.
    Named,
    /// Perhaps a call, if a tool's name follows.
    Unclear,
    Text,
}

fn begins_as(text: &str, tools: &[Value]) -> Beginning {
    if text.starts_with(['{', '[']) {
        let straight = straightened(text);
        let json = straight.as_deref().unwrap_or(text);
        let first = json.strip_prefix('[').unwrap_or(json).trim_start();
        return object_begins_as(first, tools);
    }
    for (begin, name_end, _) in FUNCTIONS {
        let function = text.strip_prefix(begin);
        if let Some((name, _)) = function.and_then(|function| function.split_once(name_end)) {
            return match is_offered(name.trim(), tools) {
                true => Beginning::Named,
                false => Beginning::Text,
            };
        }
        if function.is_some() || begin.starts_with(text) {
            return Beginning::Unclear;
        }
    }
    match FENCE.starts_with(text) || may_be_tag(text) {
        true => Beginning::Unclear,
        false => Beginning::Text,
    }
}

/// Whether a text is the beginning of a tag.
fn may_be_tag(text: &str) -> bool {
    let begun = text.strip_prefix('<').map(unclosed);
    begun.is_some_and(|begun| TAGS.iter().any(|name| name.starts_with(begun)))
}

/// Leaves out the sign of an end tag.
fn unclosed(tag: &str) -> &str {
    tag.strip_prefix('/').unwrap_or(tag)
}

/// What a text that begins with an object may be, as far as it has come.
fn object_begins_as(text: &str, tools: &[Value]) -> Beginning {
    let mut is_named = false;
    // A number whose end has not come would be an error of its own.
    let text = text.trim_end_matches(['-', '+', '.', 'e', 'E']);
    let mut values = serde_json::Deserializer::from_str(text);
    let keys = CallKeys {
        tools,
        is_named: &mut is_named,
    };
    let read = values.deserialize_map(keys);
    match read.is_err_and(|error| !error.is_eof()) {
        true => Beginning::Text,
        false if is_named => Beginning::Named,
        false => Beginning::Unclear,
    }
}

/// Reads an object up to the first key that no call has, or the name of another function.
struct CallKeys<'a> {
    tools: &'a [Value],
    /// The name of a tool has come.
    is_named: &'a mut bool,
}

impl CallKeys<'_> {
    /// For an object within.
    fn inner(&mut self) -> CallKeys<'_> {
        CallKeys {
            tools: self.tools,
            is_named: self.is_named,
        }
    }
}

impl<'de> Visitor<'de> for CallKeys<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a call")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<String>()? {
            let key = key.as_str();
            if *self.is_named {
                object.next_value::<IgnoredAny>()?;
            } else if ["function", CALLS].contains(&key) {
                // The name is in there, or is a text as others are.
                object.next_value_seed(self.inner())?;
            } else if NAMES.contains(&key) {
                let name: String = object.next_value()?;
                self.inner().visit_str::<A::Error>(&name)?;
            } else if ARGUMENTS.contains(&key) || [TYPE, ID].contains(&key) {
                object.next_value::<IgnoredAny>()?;
            } else {
                return Err(de::Error::custom("a key that no call has"));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut calls: A) -> Result<(), A::Error> {
        while !*self.is_named && calls.next_element_seed(self.inner())?.is_some() {}
        while calls.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<(), E> {
        if !is_offered(name.trim(), self.tools) {
            return Err(E::custom("the name of no tool"));
        }
        *self.is_named = true;
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for CallKeys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

fn is_language(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    text.len() <= LANGUAGE && text.trim().chars().all(is_part)
}

/// Returns the calls that an answer consists of, each with its name and its arguments: of tools that are offered, with arguments that they
/// have. None, if there is anything else in it: words before or behind a call may be about an example. `tools`: in OpenAI's form.
pub fn written_calls(answer: &str, tools: &[Value]) -> Vec<(String, String)> {
    let has_all = |arguments: &Value, schema: &Value| {
        let known = schema["properties"].as_object();
        let mut given = arguments.as_object().into_iter().flatten();
        given.all(|(name, _)| known.is_none_or(|known| known.contains_key(name)))
    };
    all_or_none(named_calls(answer, tools), tools, has_all)
}

/// As [`written_calls`], with values of the types that the tool takes, but none if one lacks an argument that its tool requires: clients
/// may not check for missing arguments.
pub fn complete_calls(answer: &str, tools: &[Value]) -> Vec<(String, String)> {
    let has_required =
        |arguments: &Value, schema: &Value| missing_argument(arguments, schema).is_none();
    let mut calls = all_or_none(written_calls(answer, tools), tools, has_required);
    for (name, arguments) in &mut calls {
        let mut values: Value = serde_json::from_str(arguments).unwrap_or_default();
        let tool = tool_named(name, tools);
        to_wanted_types(
            &mut values,
            tool.map_or(&Value::Null, |tool| &tool["parameters"]),
        );
        *arguments = values.to_string();
    }
    calls
}

/// The calls, if all of them have arguments that are right for the schema of their tool.
fn all_or_none(
    mut calls: Vec<(String, String)>,
    tools: &[Value],
    are_right: impl Fn(&Value, &Value) -> bool,
) -> Vec<(String, String)> {
    let is_right = |(name, arguments): &(String, String)| {
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let tool = tool_named(name, tools);
        tool.is_some_and(|tool| are_right(&arguments, &tool["parameters"]))
    };
    if !calls.iter().all(is_right) {
        calls.clear();
    }
    calls
}

/// As [`written_calls`], with any arguments: their reader says what is wrong with them.
pub fn named_calls(answer: &str, tools: &[Value]) -> Vec<(String, String)> {
    // Where a template has begun the thoughts, their end tag stands alone.
    let (after, last) = (split(answer).1, without_thoughts(answer));
    let mut candidates = iter::once(after).chain((last != after).then_some(last));
    let found = candidates.find_map(|text| {
        let calls = only_calls(text, tools);
        calls.or_else(|| only_calls(&straightened(text)?, tools))
    });
    found.unwrap_or_default()
}

fn tool_named<'a>(name: &str, tools: &'a [Value]) -> Option<&'a Value> {
    let mut tools = tools.iter().map(|tool| &tool["function"]);
    tools.find(|tool| tool["name"] == name)
}

fn is_offered(name: &str, tools: &[Value]) -> bool {
    tool_named(name, tools).is_some()
}

/// The calls that a text consists of, if it does.
fn only_calls(mut rest: &str, tools: &[Value]) -> Option<Vec<(String, String)>> {
    json::check(rest.as_bytes(), 0, json::MOST_MEMORY).ok()?;
    let mut calls = Vec::new();
    while let Some((more, after)) = next_calls(undecorated(rest), tools) {
        calls.extend(more);
        rest = after.trim_start().trim_start_matches([',', ';']);
    }
    (!calls.is_empty() && undecorated(rest).is_empty()).then_some(calls)
}

/// Writes JSON that has signs of prose with its own; `None` if it has none of prose. Texts between straight quotation marks stay as they
/// are.
fn straightened(json: &str) -> Option<String> {
    let is_of_prose = |letter| CURLY_BEGINS.contains(&letter) || [COLON, COMMA].contains(&letter);
    if !json.contains(is_of_prose) {
        return None;
    }
    let mut straight = String::with_capacity(json.len());
    let mut ends: &[char] = &[];
    let mut is_escaped = false;
    for letter in json.chars() {
        if ends.is_empty() {
            match letter {
                '"' => ends = &['"'],
                letter if CURLY_BEGINS.contains(&letter) => ends = &CURLY_ENDS,
                _ => {}
            }
            straight.push(match letter {
                letter if CURLY_BEGINS.contains(&letter) => '"',
                COLON => ':',
                COMMA => ',',
                letter => letter,
            });
        } else if !is_escaped && ends.contains(&letter) {
            ends = &[];
            straight.push('"');
        } else {
            // One of the other kind within the text.
            if letter == '"' && !is_escaped {
                straight.push('\\');
            }
            is_escaped = letter == '\\' && !is_escaped;
            straight.push(letter);
        }
    }
    Some(straight)
}

/// Leaves out blanks, fences of code blocks, and tags.
fn undecorated(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if let Some(block) = text.strip_prefix(FENCE) {
            let (language, inside) = block.split_once('\n').unwrap_or((block, ""));
            if !is_language(language) {
                return text;
            }
            text = inside;
        } else if let Some(inside) = without_tag(text) {
            text = inside;
        } else {
            return text;
        }
    }
}

fn without_tag(text: &str) -> Option<&str> {
    let (name, inside) = text.strip_prefix('<')?.split_once('>')?;
    TAGS.contains(&unclosed(name)).then_some(inside)
}

/// Returns the calls of the value or of the function that a text begins with, and what follows it.
fn next_calls<'a>(text: &'a str, tools: &[Value]) -> Option<(Vec<(String, String)>, &'a str)> {
    for (begin, name_end, end) in FUNCTIONS {
        let Some(function) = text.strip_prefix(begin) else {
            continue;
        };
        let (name, body) = function.split_once(name_end)?;
        let (arguments, after) = function_arguments(body.trim_start(), end)?;
        let call = offered(name.trim(), arguments, tools)?;
        let after = after.trim_start();
        return Some((vec![call], after.strip_prefix(end).unwrap_or(after)));
    }
    let (mut value, after) = first_value(text)?;
    if let Some(calls) = value.get_mut(CALLS) {
        value = calls.take();
    }
    let values = match value {
        Value::Array(values) => values,
        value => vec![value],
    };
    let calls = values.into_iter().map(|value| json_call(value, tools));
    let calls: Vec<_> = calls.collect::<Option<_>>()?;
    (!calls.is_empty()).then_some((calls, after))
}

/// Reads the object or the list that a text begins with; what follows it, without braces too many.
fn first_value(text: &str) -> Option<(Value, &str)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let after = text[values.byte_offset()..].trim_start();
    Some((value, after.trim_start_matches('}')))
}

/// The arguments of a function that is named in its tag: JSON, or an element for each. `end`: what ends the function.
fn function_arguments<'a>(body: &'a str, end: &str) -> Option<(Value, &'a str)> {
    if body.starts_with('{') {
        return first_value(body);
    }
    let (mut arguments, mut rest) = (Map::new(), body);
    while let Some((name, value)) = first_parameter(rest) {
        let (value, after) = value.split_once("</parameter>")?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(name.trim().to_owned(), value.into());
        rest = after.trim_start();
    }
    rest.starts_with(end).then(|| (arguments.into(), rest))
}

/// The name of the argument whose element a text begins with, and what follows the name.
fn first_parameter(text: &str) -> Option<(&str, &str)> {
    let mut forms = PARAMETERS.into_iter();
    forms.find_map(|(begin, end)| text.strip_prefix(begin)?.split_once(end))
}

/// The call that a JSON object describes.
fn json_call(mut call: Value, tools: &[Value]) -> Option<(String, String)> {
    if call["function"].is_object() {
        call = call["function"].take();
    }
    let name = NAMES.iter().find_map(|key| call[*key].as_str())?;
    let arguments = ARGUMENTS.iter().find_map(|key| call.get(*key))?;
    offered(name.trim(), arguments.clone(), tools)
}

/// The call, if there is such a tool.
fn offered(name: &str, arguments: Value, tools: &[Value]) -> Option<(String, String)> {
    if !is_offered(name, tools) {
        return None;
    }
    let arguments = match arguments {
        Value::String(text) => parse_arguments(&text).ok()?,
        arguments => arguments,
    };
    let call = (name.to_owned(), arguments.to_string());
    arguments.is_object().then_some(call)
}

#[cfg(test)]
mod tests;
