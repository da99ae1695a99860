//! `options` as the fields that our engine and llama-server's kin know them by.

use serde_json::{Map, Value};
use tierbar_core::{Error, bad_request};
use tierbar_request_fields::OLLAMA_OPTIONS;

/// A number below 0 means as many as there is room for, which is what leaving it out means.
const MOST: &str = "num_predict";
const STOP: &str = "stop";

/// What some clients send beside `options`, by OpenAI's names, and as which option.
const NAMED: [(&str, &str); 10] = [
    ("max_tokens", "num_predict"),
    ("max_completion_tokens", "num_predict"),
    ("max_output_tokens", "num_predict"),
    ("temperature", "temperature"),
    ("top_k", "top_k"),
    ("top_p", "top_p"),
    ("presence_penalty", "presence_penalty"),
    ("frequency_penalty", "frequency_penalty"),
    ("seed", "seed"),
    ("stop", "stop"),
];

/// Adds these to the options of a request that do not say otherwise.
pub(super) fn add_named(request: &mut Map<String, Value>) {
    for (theirs, option) in NAMED {
        let Some(value) = request
            .shift_remove(theirs)
            .filter(|value| !value.is_null())
        else {
            continue;
        };
        let options = request.entry("options").or_insert(Value::Null);
        if options.is_null() {
            *options = Value::Object(Map::new());
        }
        // Anything but an object is refused where it is parsed.
        if let Value::Object(options) = options {
            options.entry(option).or_insert(value);
        }
    }
}

/// Puts the options that answers follow into a request. Others concern a model's load, such as `num_ctx`, and are the tier's to say.
pub(super) fn put(
    options: &Map<String, Value>,
    request: &mut Map<String, Value>,
) -> Result<(), Error> {
    let given = |name: &str| options.get(name).filter(|value| !value.is_null());
    for name in OLLAMA_OPTIONS.honored().filter(|name| *name != STOP) {
        let Some(value) = given(name) else { continue };
        let number = value.as_f64().ok_or_else(|| wrong(name, "a number"))?;
        let ours = match name {
            MOST if number < 0.0 => continue,
            MOST => "max_tokens",
            name => name,
        };
        request.insert(ours.to_owned(), whole(number, value));
    }
    if let Some(stop) = given(STOP) {
        let is_text = |stops: &Vec<Value>| stops.iter().all(Value::is_string);
        if !stop.is_string() && !stop.as_array().is_some_and(is_text) {
            return Err(wrong(STOP, "a list of strings"));
        }
        request.insert(STOP.to_owned(), stop.clone());
    }
    Ok(())
}

/// Clients whose language has one kind of numbers send counts as fractions.
fn whole(number: f64, value: &Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.is_f64() && number.fract() == 0.0 && number.abs() < EXACT {
        #[allow(clippy::cast_possible_truncation)]
        return (number as i64).into();
    }
    value.clone()
}

fn wrong(name: &str, what: &str) -> Error {
    bad_request(format!("`options.{name}` is not {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tierbar_core::Code;

    fn converted(options: &Value) -> Result<Value, Error> {
        let mut request = Map::new();
        put(options.as_object().unwrap(), &mut request)?;
        Ok(request.into())
    }

    #[test]
    fn options_are_renamed_and_those_of_a_load_are_left_out() {
        let options = json!({
            "num_predict": 9.0, "temperature": 0.5, "top_k": 3, "seed": 7, "stop": ["a", "b"], "mirostat_tau": 5.0,
            "num_ctx": 131_072, "num_gpu": 99, "num_keep": 4, "tfs_z": 1.0, "anything": {}, "min_p": null,
        });
        assert_eq!(
            converted(&options).unwrap(),
            json!({"max_tokens": 9, "temperature": 0.5, "top_k": 3, "seed": 7, "mirostat_tau": 5, "stop": ["a", "b"]})
        );
    }

    #[test]
    fn what_stands_beside_the_options_is_one_of_them() {
        for (request, options) in [
            (json!({}), Value::Null),
            (json!({"temperature": null}), Value::Null),
            (
                json!({"max_tokens": 9, "stop": ["a"]}),
                json!({"num_predict": 9, "stop": ["a"]}),
            ),
            (json!({"max_output_tokens": 9}), json!({"num_predict": 9})),
            (
                json!({"temperature": 1, "seed": 7, "options": {"temperature": 0}}),
                json!({"temperature": 0, "seed": 7}),
            ),
            (json!({"top_p": 1, "options": 7}), json!(7)),
        ] {
            let mut read = request.as_object().unwrap().clone();
            add_named(&mut read);
            let found = read.shift_remove("options").unwrap_or_default();
            assert_eq!(found, options, "{request}");
            assert!(read.is_empty(), "{request}");
        }
    }

    #[test]
    fn negative_limits_mean_no_limit() {
        let options = json!({"num_predict": -1, "repeat_last_n": -1, "seed": -1});
        // The engine reads the second as Ollama does: the whole context.
        let passed = json!({"repeat_last_n": -1, "seed": -1});
        assert_eq!(converted(&options).unwrap(), passed);
        assert_eq!(converted(&json!({"num_predict": -2})).unwrap(), json!({}));
    }

    #[test]
    fn an_option_of_the_wrong_type_is_refused_by_its_own_name() {
        for (options, named) in [
            (json!({"num_predict": "many"}), "options.num_predict"),
            (json!({"temperature": [1]}), "options.temperature"),
            (json!({"stop": 7}), "options.stop"),
            (json!({"stop": ["a", 7]}), "options.stop"),
        ] {
            let error = converted(&options).unwrap_err();
            assert_eq!(error.code, Code::BadRequest);
            assert!(error.message.contains(named), "{error}");
        }
    }
}
