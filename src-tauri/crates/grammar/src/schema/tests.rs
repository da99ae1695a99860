use super::*;

const SCHEMA: &str = "the JSON schema";

fn held(schema: &Value) -> Result<Value, Error> {
    let mut placeholders = Placeholders::absent_from(&schema.to_string());
    translate_schema(schema, SCHEMA, true, &mut placeholders)
}

fn refusal(schema: &Value) -> String {
    match held(schema) {
        Ok(held) => panic!("{schema} is held: {held}"),
        Err(error) => error.message,
    }
}

/// An object with one property, which is required.
fn object(property: &Value) -> Value {
    json!({"type": "object", "properties": {"a": property}, "required": ["a"]})
}

#[test]
fn what_no_grammar_holds_is_refused_with_its_place() {
    for (property, key) in [
        (json!({"type": "boolean", "not": {"const": true}}), "not"),
        (
            json!({"if": {"type": "string"}, "then": {"minLength": 3}}),
            "if",
        ),
        (
            json!({"type": "array", "uniqueItems": true, "maxItems": 3}),
            "uniqueItems",
        ),
        (
            json!({"type": "array", "contains": {"const": 5}}),
            "contains",
        ),
        (
            json!({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}),
            "patternProperties",
        ),
        (
            json!({"type": "object", "propertyNames": {"pattern": "^x"}}),
            "propertyNames",
        ),
        (
            json!({"type": "object", "additionalProperties": {}, "minProperties": 1}),
            "minProperties",
        ),
        (
            json!({"type": "object", "maxProperties": 2}),
            "maxProperties",
        ),
        (
            json!({"properties": {"a": {}}, "dependentRequired": {"a": ["b"]}}),
            "dependentRequired",
        ),
        (json!({"type": "string", "pattern": "(?=a)b"}), "pattern"),
        (json!({"type": "string", "pattern": "("}), "pattern"),
        (
            json!({"type": "string", "pattern": "ab", "maxLength": 5}),
            "pattern",
        ),
        (json!({"type": "string", "maxLength": 100_000}), "maxLength"),
        (json!({"type": "array", "minItems": 1_000_000}), "minItems"),
        (json!({"type": "number", "multipleOf": 0.3}), "multipleOf"),
        (json!({"type": "integer", "multipleOf": 7}), "multipleOf"),
        (json!({"enum": ["ab", "cd"], "pattern": "^a"}), "pattern"),
        (
            json!({"oneOf": [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 3}]}),
            "oneOf",
        ),
    ] {
        let message = refusal(&object(&property));
        let start = format!("`{key}` at `#/properties/a` of the JSON schema ");
        assert!(message.starts_with(&start), "{property}: {message}");
        // In the schema of a function that is not strict, it is a hint.
        let schema = object(&property);
        let mut placeholders = Placeholders::absent_from("");
        let lenient = translate_schema(&schema, SCHEMA, false, &mut placeholders);
        assert!(lenient.is_ok(), "{property}: {lenient:?}");
    }
}

#[test]
fn a_schema_that_allows_no_answer_is_refused() {
    for (property, part) in [
        (
            json!({"type": "integer", "minimum": 5, "maximum": 3}),
            "no number",
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 6}),
            "no number",
        ),
        (
            json!({"type": "string", "minLength": 5, "maxLength": 3}),
            "`minLength` is more than `maxLength`",
        ),
        (
            json!({"type": "array", "minItems": 3, "maxItems": 1}),
            "`minItems` is more than `maxItems`",
        ),
        (json!({"enum": []}), "`enum`"),
        (json!({"type": "integer", "enum": ["a"]}), "no value"),
        (json!({"type": "string", "const": 5}), "no value"),
        (
            json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
            "nothing has all of its types",
        ),
        (
            json!({"properties": {}, "required": ["b"], "additionalProperties": false}),
            "requires \"b\"",
        ),
        (json!({"type": "strng"}), "unknown `type` \"strng\""),
        (json!({"type": []}), "unknown `type` []"),
        (json!(false), "`false`"),
        (json!([1]), "is not a schema"),
        (json!({"$ref": "#/$defs/zz"}), "\"#/$defs/zz\""),
        (
            json!({"$ref": "https://example.com/x.json"}),
            "https://example.com/x.json",
        ),
        (
            json!({"type": "integer", "multipleOf": 7, "minimum": 15, "maximum": 20}),
            "no multiple",
        ),
        (json!({"anyOf": []}), "`anyOf`"),
    ] {
        let message = refusal(&object(&property));
        assert!(
            message.starts_with("`#/properties/a` of the JSON schema ") && message.contains(part),
            "{property}: {message}"
        );
    }
    for schema in [json!(false), json!([1]), json!("object")] {
        let message = refusal(&schema);
        assert!(message.starts_with("`#` of the JSON schema "), "{message}");
    }
}

#[test]
fn a_schema_that_has_no_end_is_refused() {
    let chain = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
    let tree =
        json!({"type": "object", "properties": {"child": {"$ref": "#"}}, "required": ["child"]});
    let list = json!({"type": "array", "items": {"$ref": "#"}, "minItems": 1});
    for schema in [chain, tree, list] {
        let message = refusal(&schema);
        assert!(message.contains("no finite answer"), "{message}");
    }
    let knot = json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"type": "object"}]}}, "$ref": "#/$defs/a"});
    let message = refusal(&knot);
    assert!(message.contains("refers to itself"), "{message}");
    for ends in [
        json!({"type": "object", "properties": {"child": {"$ref": "#"}}}),
        json!({"type": "array", "items": {"$ref": "#"}}),
        json!({"type": "object", "properties": {"child": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["child"]}),
    ] {
        assert!(held(&ends).is_ok(), "{ends}");
    }
}

#[test]
fn what_a_grammar_holds_in_another_form_is_rewritten() {
    let closed = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let text = json!({"type": "string"});
    let (yes, number) = (json!({"type": "boolean"}), json!({"type": "number"}));
    for (schema, expected) in [
        (
            json!({"type": "object", "title": "A", "description": "b"}),
            json!({"type": "object"}),
        ),
        (json!(true), json!({"type": TYPES})),
        // Sibling parts, and a property that only `required` names.
        (
            json!({"allOf": [closed(json!({"a": text}), json!(["a"])), {"properties": {"b": yes}, "required": ["b", "c"]}]}),
            closed(
                json!({"a": text, "b": yes, "c": {}}),
                json!(["a", "b", "c"]),
            ),
        ),
        (
            json!({"type": "object", "properties": {"a": text}, "anyOf": [{"required": ["a"]}, {"properties": {"b": yes}}]}),
            json!({"anyOf": [closed(json!({"a": text}), json!(["a"])), closed(json!({"a": text, "b": yes}), json!([]))]}),
        ),
        (
            json!({"allOf": [{"enum": ["x", "y"]}, {"enum": ["y", "z"]}]}),
            json!({"enum": ["y"]}),
        ),
        (
            json!({"enum": [1, "a", 9], "type": "integer", "maximum": 5}),
            json!({"enum": [1]}),
        ),
        (
            json!({"type": "integer", "multipleOf": 7, "minimum": 15, "maximum": 29}),
            json!({"enum": [21, 28]}),
        ),
        (
            json!({"type": "array", "prefixItems": [number, yes], "items": false, "minItems": 2}),
            json!({"type": "array", "prefixItems": [number, yes]}),
        ),
        (
            json!({"type": "array", "prefixItems": [number], "items": yes, "minItems": 3, "maxItems": 4}),
            json!({"type": "array", "prefixItems": [number, yes, yes]}),
        ),
        (
            json!({"type": "object", "propertyNames": {"enum": ["k"]}, "additionalProperties": yes}),
            json!({"type": "object", "properties": {"k": yes}, "required": [], "additionalProperties": false}),
        ),
        // An alternative that cannot be held is left out.
        (
            json!({"anyOf": [number, {"type": "string", "pattern": "(?=a)b"}, {"type": "null"}]}),
            json!({"anyOf": [number, {"type": "null"}]}),
        ),
        (
            json!({"type": ["string", "null"], "minLength": 2}),
            json!({"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]}),
        ),
    ] {
        assert_eq!(held(&schema).unwrap(), expected, "{schema}");
    }
    let null_alone = json!({"anyOf": [{"type": "string", "pattern": "(?=a)b"}, {"type": "null"}]});
    assert!(refusal(&null_alone).starts_with("`pattern` at `#/anyOf/0`"));
}

#[test]
fn definitions_have_names_of_their_own() {
    let schema = json!({"$defs": {"X": {"type": "string", "title": "x"}},
                        "type": "object", "properties": {"a": {"$ref": "#/$defs/X", "description": "an x"}}});
    let mut placeholders = Placeholders::absent_from("");
    let first = translate_schema(&schema, SCHEMA, true, &mut placeholders).unwrap();
    assert_eq!(first["properties"]["a"], json!({"$ref": "#/$defs/d0x"}));
    assert_eq!(first["$defs"], json!({"d0x": {"type": "string"}}));
    let second = translate_schema(&schema, SCHEMA, true, &mut placeholders).unwrap();
    assert_eq!(second["properties"]["a"], json!({"$ref": "#/$defs/d1x"}));
    // What stands beside a reference holds too.
    let beside = json!({"$defs": {"X": {"type": "string"}}, "$ref": "#/$defs/X", "enum": ["q", 1]});
    assert_eq!(held(&beside).unwrap(), json!({"enum": ["q"]}));
}

#[test]
fn only_one_of_some_alternatives_holds() {
    let kind = |name: &str| json!({"type": "object", "properties": {"kind": {"const": name}}, "required": ["kind"]});
    let with = |name: &str| json!({"type": "object", "properties": {name: {}}, "required": [name]});
    for ways in [
        json!([{"type": "string"}, {"type": "integer"}]),
        json!([kind("a"), kind("b")]),
        json!([with("a"), with("b")]),
        json!([{"enum": [1, 2]}, {"const": 3}]),
        json!([{"type": "integer", "maximum": 5}, {"type": "number", "minimum": 6}]),
        json!([{"type": "array"}, {"type": "null"}]),
    ] {
        let schema = json!({"oneOf": ways});
        assert!(held(&schema).is_ok(), "{schema}");
    }
    let names: Vec<_> = (0..2000)
        .map(|n| json!({"const": format!("n{n}")}))
        .collect();
    let numbers = (0..300).map(|n| json!({"const": n, "title": format!("t{n}")}));
    let numbers: Vec<_> = numbers.collect();
    let null = json!({"type": "null"});
    let objects = [json!({"const": {"a": 1}}), json!({"enum": [{"a": 2}, [1]]})];
    let with_null: Vec<_> = names.iter().chain([&null]).collect();
    for ways in [
        json!(names),
        json!(with_null),
        json!(numbers),
        json!(objects),
    ] {
        assert!(held(&json!({"oneOf": ways})).is_ok(), "{ways}");
    }
    let twice: Vec<_> = names.iter().chain([&names[7]]).collect();
    let number: Vec<_> = numbers
        .iter()
        .chain([&json!({"type": "integer"})])
        .cloned()
        .collect();
    let kinds: Vec<_> = (0..300).map(|n| kind(&format!("n{n}"))).collect();
    for ways in [
        json!(twice),
        json!(number),
        json!([objects[0], {"enum": [null, {"a": 1}]}]),
        json!([{"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}]),
        json!([{"type": "number"}, {"type": "integer"}]),
        json!([kind("a"), kind("a")]),
        json!([{"type": "object", "properties": {"a": {}}}, with("a")]),
        // Texts are valid by the second, too.
        json!([{"type": "string"}, {"properties": {"a": {}}}]),
    ] {
        let message = refusal(&json!({"oneOf": ways}));
        assert!(message.starts_with("`oneOf` at `#` "), "{message}");
    }
    for key in ["anyOf", "oneOf"] {
        let message = refusal(&json!({key: kinds}));
        assert!(message.contains("has 300 alternatives"), "{message}");
    }
}

#[test]
fn many_objects_differ_by_a_discriminator() {
    let object = |kinds: Value| {
        let version = json!({"const": 1});
        let properties = json!({"version": version, "text": {"type": "string"}, "kind": kinds});
        json!({"type": "object", "properties": properties, "required": ["version", "text", "kind"]})
    };
    let numbers = 0..MOST_ALTERNATIVES;
    let mut ways: Vec<_> = numbers
        .map(|n| object(json!({"enum": [n, format!("k{n}")]})))
        .collect();
    assert!(held(&json!({"oneOf": ways})).is_ok());
    ways[0] = json!({"type": "null"});
    assert!(held(&json!({"oneOf": ways})).is_ok());
    // Two overlap.
    ways[200] = object(json!({"const": "k7"}));
    let message = refusal(&json!({"oneOf": ways}));
    assert!(message.contains("may hold at once"), "{message}");
    ways[200] = object(json!({"type": "string"}));
    let message = refusal(&json!({"oneOf": [ways[7], ways[200]]}));
    assert!(message.contains("may hold at once"), "{message}");
}

#[test]
fn alternatives_that_take_too_long_to_compare_are_refused() {
    let ranges = (0..MOST_ALTERNATIVES)
        .map(|n| object(&json!({"type": "integer", "minimum": 10 * n, "maximum": 10 * n + 5})));
    let ranges: Vec<_> = ranges.collect();
    let schema = json!({"oneOf": ranges});
    let message = refusal(&schema);
    assert!(message.contains("too large to compare"), "{message}");
    assert!(held(&json!({"oneOf": ranges[..20]})).is_ok());
    let mut placeholders = Placeholders::absent_from("");
    let lenient = translate_schema(&schema, SCHEMA, false, &mut placeholders);
    assert!(lenient.is_ok(), "{lenient:?}");
}

#[test]
fn alternatives_that_are_left_out_or_values_do_not_count() {
    let objects = |count: usize| {
        let objects = (0..count).map(|n| object(&json!({"const": n})));
        objects.collect::<Vec<_>>()
    };
    let left_out = json!({"type": "string", "pattern": "(?=a)b"});
    let mut ways = objects(MOST_ALTERNATIVES);
    ways.extend([json!({"const": "a"}), left_out]);
    assert!(held(&json!({"anyOf": ways})).is_ok());
    let message = refusal(&json!({"anyOf": objects(MOST_ALTERNATIVES + 1)}));
    assert!(message.contains("has 257 alternatives"), "{message}");
}

#[test]
fn constants_stand_for_grammars_of_ours() {
    let share = json!({"type": "number", "minimum": 0, "maximum": 1});
    let schema = json!({"type": "object", "properties": {"a": share, "b": share, "c": {"const": "tierbar-form-0-0"}}});
    let mut placeholders = Placeholders::absent_from(&schema.to_string());
    let held = translate_schema(&schema, SCHEMA, true, &mut placeholders).unwrap();
    assert_eq!(
        held["properties"]["a"],
        json!({"const": "tierbar-form-1-0"})
    );
    assert_eq!(held["properties"]["a"], held["properties"]["b"]);
    assert_eq!(placeholders.grammars.len(), 1);
    let grammars = placeholders.into_grammars();
    let literal = r#""\"tierbar-form-1-0\"""#;
    let grammar = replace_placeholders(format!("a ::= {literal} | {literal}"), &grammars);
    let share = grammars["tierbar-form-1-0"].as_str().unwrap();
    assert_eq!(grammar, format!("a ::= ({share}) | ({share})"));
}

#[test]
fn many_values_share_their_beginnings() {
    let mut values: Vec<_> = (0..100).map(|n| json!(format!("é{n}"))).collect();
    values.extend([json!(1), json!("é1"), json!("\"\\")]);
    let mut placeholders = Placeholders::absent_from("");
    let schema = json!({"enum": values});
    let held = translate_schema(&schema, SCHEMA, true, &mut placeholders).unwrap();
    assert_eq!(held, json!({"const": "tierbar-form-0-0"}));
    let grammar = placeholders.grammars["tierbar-form-0-0"].as_str().unwrap();
    let of_nine = r#""9" ("\"" | "0\"" | "1\"""#;
    assert!(grammar.contains(of_nine), "{grammar}");
    let begins = r#""\"" ("\\\"\\\\\"" | "é" ("0\"" | "1" ("\"" | "0\"""#;
    assert!(grammar.starts_with(begins), "{grammar}");
    assert!(grammar.ends_with(r#") | "1""#), "{grammar}");
    let ways: Vec<_> = values.iter().map(|value| json!({"const": value})).collect();
    let held_as = |schema: Value| {
        let mut placeholders = Placeholders::absent_from("");
        let held = translate_schema(&schema, SCHEMA, true, &mut placeholders).unwrap();
        (held, placeholders.into_grammars())
    };
    let alternatives = held_as(json!({"anyOf": ways}));
    assert_eq!(alternatives, held_as(json!({"enum": values})));
    let mixed =
        json!({"anyOf": [{"type": "null"}, ways[0], {"type": "boolean"}, {"enum": values[1..]}]});
    let (held, _) = held_as(mixed);
    let listed = json!({"const": "tierbar-form-0-0"});
    let expected = json!({"anyOf": [{"type": "null"}, listed, {"type": "boolean"}]});
    assert_eq!(held, expected);
    // Brackets within one another are few.
    let nested: Vec<_> = (0..500).map(|n| json!("a".repeat(n))).collect();
    let mut placeholders = Placeholders::absent_from("");
    translate_schema(&json!({"enum": nested}), SCHEMA, true, &mut placeholders).unwrap();
    let grammar = placeholders.grammars["tierbar-form-0-0"].as_str().unwrap();
    assert!(grammar.matches('(').count() < 40, "{grammar}");
}
