//! The macros of `utoipa` that the API uses, without the descriptions. Only [`macro@path`] leaves something: where a handler is mounted,
//! and its reach, which `utoipa` does not know.

use proc_macro::{Delimiter, TokenStream, TokenTree};

/// As `utoipa::ToSchema`: nothing.
#[proc_macro_derive(ToSchema, attributes(schema, serde))]
pub fn to_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// As `utoipa::IntoParams`: nothing.
#[proc_macro_derive(IntoParams, attributes(into_params, param, serde))]
pub fn into_params(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// As `utoipa::ToResponse`: nothing.
#[proc_macro_derive(ToResponse, attributes(response, content, to_schema))]
pub fn to_response(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// As `utoipa::OpenApi`: nothing.
#[proc_macro_derive(OpenApi, attributes(openapi))]
pub fn open_api(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// As `utoipa::path`: the handler, and beside it its method and path as `utoipa::Path`, without an operation. `reach(…)` is required: who
/// may call, and what the route gives (`tierbar_http::reach`).
#[proc_macro_attribute]
pub fn path(attributes: TokenStream, handler: TokenStream) -> TokenStream {
    declare(attributes, handler, |route| {
        let Route {
            visibility,
            name,
            method,
            path,
            ..
        } = route;
        let method = method[..1].to_uppercase() + &method[1..];
        // A derive of utoipa names it so.
        let place = format!("__path_{name}");
        let mounted = format!(
            "#[doc(hidden)] #[allow(non_camel_case_types)] {visibility} struct {place};
             impl utoipa::Path for {place} {{
                 fn methods() -> Vec<utoipa::openapi::HttpMethod> {{
                     vec![utoipa::openapi::HttpMethod::{method}]
                 }}
                 fn path() -> String {{ ({path}).into() }}
                 fn operation() -> utoipa::openapi::path::Operation {{
                     utoipa::openapi::path::Operation::new()
                 }}
             }}"
        );
        (String::new(), mounted)
    })
}

/// As [`macro@path`], with the description, which has the credentials that follow from the reach.
#[proc_macro_attribute]
pub fn described_path(attributes: TokenStream, handler: TokenStream) -> TokenStream {
    declare(attributes, handler, |route| {
        let is_open = ["Anyone", "Inference"]
            .iter()
            .any(|who| route.reach.starts_with(who));
        let security = if is_open {
            ""
        } else {
            "security((\"token\" = []))"
        };
        let described = format!("#[utoipa::describe({}, {security})]", route.described);
        (described, String::new())
    })
}

/// The handler with what `written` puts before and behind it, and with its reach.
fn declare(
    attributes: TokenStream,
    handler: TokenStream,
    written: impl FnOnce(&Route) -> (String, String),
) -> TokenStream {
    let Some(route) = Route::parse(attributes, handler.clone()) else {
        let missing = "`path` needs a method, `path = …` and `reach(…)`, above a function: \
             `tierbar_http::reach` says what a reach is";
        let mut all: TokenStream = format!("compile_error!({missing:?});")
            .parse()
            .unwrap_or_default();
        all.extend(handler);
        return all;
    };
    let (before, behind) = written(&route);
    let Route {
        name,
        method,
        reach,
        ..
    } = route;
    let reach = format!(
        "impl tierbar_http::reach::Declared for __path_{name} {{
             const METHOD: &'static str = {:?};
             const REACH: tierbar_http::reach::Reach = {{
                 use tierbar_http::reach::Part::*;
                 tierbar_http::reach::Reach::of(&[{reach}])
             }};
         }}",
        method.to_uppercase()
    );
    let mut all: TokenStream = before.parse().unwrap_or_default();
    all.extend(handler);
    all.extend((behind + &reach).parse::<TokenStream>());
    all
}

/// What an attribute and its function say.
struct Route {
    visibility: String,
    name: String,
    /// As in the attribute, such as `post`.
    method: String,
    /// An expression.
    path: String,
    /// The words of the reach.
    reach: String,
    /// The attribute without the reach.
    described: String,
}

impl Route {
    fn parse(attributes: TokenStream, handler: TokenStream) -> Option<Self> {
        let (visibility, name) = signature(handler)?;
        let is_comma =
            |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ',');
        let attributes: Vec<_> = attributes.into_iter().collect();
        let (mut path, mut reach, mut described) = (None, None, Vec::new());
        for part in attributes.split(is_comma) {
            let text = part.iter().cloned().collect::<TokenStream>().to_string();
            match part {
                [TokenTree::Ident(key), TokenTree::Group(words)] if key.to_string() == "reach" => {
                    reach = Some(words.stream().to_string());
                    continue;
                }
                [TokenTree::Ident(key), TokenTree::Punct(_), value @ ..]
                    if key.to_string() == "path" =>
                {
                    path = Some(value.iter().cloned().collect::<TokenStream>().to_string());
                }
                [] => continue,
                _ => {}
            }
            described.push(text);
        }
        Some(Self {
            visibility,
            name,
            method: described.first()?.clone(),
            path: path?,
            reach: reach?,
            described: described.join(", "),
        })
    }
}

/// The visibility and the name of a function.
fn signature(handler: TokenStream) -> Option<(String, String)> {
    let mut tokens = handler.into_iter().peekable();
    let mut visibility = String::new();
    loop {
        match tokens.next()? {
            TokenTree::Ident(word) if word.to_string() == "pub" => {
                let part = tokens.next_if(
                    |next| matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis),
                );
                visibility = format!(
                    "pub {}",
                    part.map_or(String::new(), |part| part.to_string())
                );
            }
            TokenTree::Ident(word) if word.to_string() == "fn" => {
                return Some((visibility, tokens.next()?.to_string()));
            }
            _ => {}
        }
    }
}
