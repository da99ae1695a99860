//! The macros of `utoipa` that the API uses, without the descriptions. Only [`macro@path`] leaves something: where a handler is mounted.

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

/// As `utoipa::IntoResponses`: nothing.
#[proc_macro_derive(
    IntoResponses,
    attributes(response, to_schema, ref_response, to_response)
)]
pub fn into_responses(_: TokenStream) -> TokenStream {
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

/// As `utoipa::path`: the handler, and beside it its method and path as `utoipa::Path`, without an operation.
#[proc_macro_attribute]
pub fn path(attributes: TokenStream, handler: TokenStream) -> TokenStream {
    let mounted = mounted(attributes).and_then(|(method, path)| {
        let (visibility, name) = signature(handler.clone())?;
        // A derive of utoipa names it so.
        let place = format!("__path_{name}");
        Some(format!(
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
        ))
    });
    let text = mounted.unwrap_or_else(|| {
        "compile_error!(\"`path` needs a method and, after it, `path = …`, above a function\");"
            .to_owned()
    });
    let mut all = handler;
    all.extend(text.parse::<TokenStream>());
    all
}

/// The method, as utoipa's enum has it, and the expression of the path.
fn mounted(attributes: TokenStream) -> Option<(String, String)> {
    let mut tokens = attributes.into_iter();
    let method = tokens.next()?.to_string();
    let method = method[..1].to_uppercase() + &method[1..];
    while !matches!(tokens.next()?, TokenTree::Ident(name) if name.to_string() == "path") {}
    if !matches!(tokens.next()?, TokenTree::Punct(sign) if sign.as_char() == '=') {
        return None;
    }
    let is_inside =
        |token: &TokenTree| !matches!(token, TokenTree::Punct(sign) if sign.as_char() == ',');
    let path: TokenStream = tokens.take_while(is_inside).collect();
    Some((method, path.to_string()))
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
