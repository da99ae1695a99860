//! Constraints of an answer: the fields of a request that give it a form, JSON schemas in the part of the language that llama.cpp's
//! grammars follow, patterns and numbers in GBNF, and the functions that it may call. Pure.

mod answer;
mod decimal;
mod pattern;
mod schema;
mod texts;
mod tools;

pub use answer::{AnswerForm, AnswerRule, LONGEST_GRAMMAR};
pub use schema::{Placeholders, replace_placeholders, translate_schema};
pub use tools::OfferedTools;

use tierbar_core::{Code, Error};

/// Refuses a text of more than `longest` bytes, or with too many brackets within one another: llama.cpp's grammar parser recurses,
/// and the end of its stack ends the process. `what`: the text's name in messages.
///
/// # Errors
/// `BadRequest` with the limit.
pub fn check_extent(what: &str, text: &str, longest: usize) -> Result<(), Error> {
    const DEEPEST: usize = 100;
    let length = text.len();
    if length > longest {
        return Err(bad(format!(
            "{what} has {length} bytes; the limit is {longest}"
        )));
    }
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(bad(format!(
                "{what} is nested deeper than {DEEPEST} levels"
            )));
        }
    }
    Ok(())
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(Code::BadRequest, message)
}
