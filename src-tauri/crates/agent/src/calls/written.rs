//! Calls that a model writes as the text of its answer: as JSON, in a code block or between tags.

use super::arguments::parse_arguments;
use crate::text_choice::without_thoughts;
use serde_json::{Map, Value};
use tierbar_chats::thinking::split;
use tierbar_core::json;

/// What stands around the JSON of a call.
const TAGS: [&str; 6] = [
    "<tool_call>",
    "</tool_call>",
    "<tools>",
    "</tools>",
    "<function_call>",
    "</function_call>",
];
const FENCE: &str = "```";
/// A function that is named in its tag.
const FUNCTION: &str = "<function=";
/// The keys with which the JSON of a call can begin.
const KEYS: [&str; 6] = ["name", "function", "type", "arguments", "parameters", "id"];
/// The longest name of a code block's language.
const LANGUAGE: usize = 20;

/// Returns whether a text that begins so may turn out to be a call, so that it is not an answer yet.
pub fn may_begin_call(text: &str) -> bool {
    let text = undecorated(text);
    if let Some(list) = text.strip_prefix('[') {
        let first = list.trim_start();
        return first.is_empty() || first.starts_with('{');
    }
    if let Some(object) = text.strip_prefix('{') {
        let first = object.trim_start();
        let Some(key) = first.strip_prefix('"') else {
            return first.is_empty();
        };
        return KEYS.iter().any(|known| match key.strip_prefix(known) {
            Some(rest) => rest.is_empty() || rest.starts_with('"'),
            None => known.starts_with(key),
        });
    }
    let mut marks = TAGS.into_iter().chain([FENCE, FUNCTION]);
    text.starts_with(FUNCTION) || marks.any(|mark| mark.starts_with(text))
}

fn is_language(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    text.len() <= LANGUAGE && text.trim().chars().all(is_part)
}

/// Returns the calls that an answer consists of, each with its name and its arguments: of tools that are offered, with arguments that they
/// have. None, if there is anything else in it: words before or behind a call may be about an example. `tools`: in OpenAI's form.
pub fn written_calls(answer: &str, tools: &[Value]) -> Vec<(String, String)> {
    if json::values_memory(answer.as_bytes()) > json::MOST_MEMORY {
        return Vec::new();
    }
    // Where a template has begun the thoughts, their end tag stands alone.
    let candidates = [split(answer).1, without_thoughts(answer)];
    let mut read = candidates.into_iter().map(|mut rest| {
        let mut calls = Vec::new();
        while let Some((more, after)) = next_calls(undecorated(rest), tools) {
            calls.extend(more);
            rest = after;
        }
        calls.retain(|_| undecorated(rest).is_empty());
        calls
    });
    let found = read.find(|calls| !calls.is_empty());
    found.unwrap_or_default()
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
        } else if let Some(inside) = TAGS.iter().find_map(|tag| text.strip_prefix(tag)) {
            text = inside;
        } else {
            return text;
        }
    }
}

/// Returns the calls of the value or of the function that a text begins with, and what follows it.
fn next_calls<'a>(text: &'a str, tools: &[Value]) -> Option<(Vec<(String, String)>, &'a str)> {
    if let Some(function) = text.strip_prefix(FUNCTION) {
        let (name, body) = function.split_once('>')?;
        let (arguments, after) = function_arguments(body.trim_start())?;
        let call = offered(name.trim(), arguments, tools)?;
        let after = after.trim_start();
        return Some((
            vec![call],
            after.strip_prefix("</function>").unwrap_or(after),
        ));
    }
    let (value, after) = first_value(text)?;
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

/// The arguments of a function that is named in its tag: JSON, or an element for each.
fn function_arguments(body: &str) -> Option<(Value, &str)> {
    if body.starts_with('{') {
        return first_value(body);
    }
    let (mut arguments, mut rest) = (Map::new(), body);
    while let Some(parameter) = rest.strip_prefix("<parameter=") {
        let (name, value) = parameter.split_once('>')?;
        let (value, after) = value.split_once("</parameter>")?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(name.trim().to_owned(), value.into());
        rest = after.trim_start();
    }
    rest.starts_with("</function>")
        .then(|| (arguments.into(), rest))
}

/// The call that a JSON object describes.
fn json_call(mut call: Value, tools: &[Value]) -> Option<(String, String)> {
    if call["function"].is_object() {
        call = call["function"].take();
    }
    let name = call["name"].as_str().or(call["function"].as_str())?;
    let name = name.trim().to_owned();
    let fields = ["arguments", "parameters"].into_iter();
    let mut arguments = fields.filter_map(|field| call.get(field).cloned());
    offered(&name, arguments.next()?, tools)
}

/// The call, if there is such a tool with such arguments.
fn offered(name: &str, arguments: Value, tools: &[Value]) -> Option<(String, String)> {
    let mut tools = tools.iter().map(|tool| &tool["function"]);
    let tool = tools.find(|tool| tool["name"] == name)?;
    let arguments = match arguments {
        Value::String(text) => parse_arguments(&text).ok()?,
        arguments => arguments,
    };
    let mut names = arguments.as_object()?.keys();
    let known = tool["parameters"]["properties"].as_object();
    let fits = known.is_none_or(|known| names.all(|name| known.contains_key(name)));
    fits.then(|| (name.to_owned(), arguments.to_string()))
}
