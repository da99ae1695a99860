//! Which tier suits a client.

use super::{Client, ClientServer, ClientTier};

/// The tier that a client's settings name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) model: String,
    /// Its context; where that is not known, what the client needs.
    pub(super) context_tokens: u32,
    pub(super) tools: bool,
    pub(super) reason: String,
    pub(super) warnings: Vec<String>,
}

/// Where no tier has a model yet.
const USUAL: &str = "primary";
const USUAL_CONTEXT: u32 = 8192;
/// Most tokens of an answer, which is as much as agents write at once.
const LONGEST_ANSWER: u32 = 4096;

impl Choice {
    /// Tokens of an answer, where a client sets apart room for it: a quarter of the context at most, so that the rest is the
    /// conversation's.
    pub(super) fn answer_tokens(&self) -> u32 {
        (self.context_tokens / 4).clamp(1, LONGEST_ANSWER)
    }
}

/// Returns the named tier, or the first that has all that the client needs, or else the one that lacks least.
pub(super) fn choose(client: &Client, server: &ClientServer, named: Option<&str>) -> Choice {
    let needs = client.needs;
    // What acts by itself needs the best model; a chat should not wait for the largest.
    let order: &[&str] = match needs.tools {
        true => &["heavy", "primary", "fast"],
        false => &["primary", "heavy", "fast"],
    };
    let rank = |tier: &ClientTier| {
        let place = order.iter().position(|name| *name == tier.id.as_str());
        place.unwrap_or(order.len())
    };
    let lacks = |tier: &ClientTier| {
        let short = tier.context_tokens.is_some_and(|has| has < needs.context);
        // It calls them all the same, but was not made for it.
        let told_in_words = needs.tools && tier.tools == Some(false);
        (short, told_in_words)
    };
    let mut tiers = server.tiers.iter();
    let chosen = match named {
        None => tiers.min_by_key(|tier| (lacks(tier), rank(tier))),
        Some(name) => tiers.find(|tier| tier.id.as_str() == name),
    };
    let Some(tier) = chosen else {
        return unknown(client, named);
    };
    let usual = needs.context.max(USUAL_CONTEXT);
    Choice {
        model: tier.id.to_string(),
        context_tokens: tier.context_tokens.unwrap_or(usual),
        tools: tier.tools.is_some() || needs.tools,
        reason: reason(client, tier, named.is_some()),
        warnings: warnings(client, tier),
    }
}

/// A name that is no tier's, such as `auto` or a chain's, is taken as it is.
fn unknown(client: &Client, named: Option<&str>) -> Choice {
    let needs = client.needs;
    let (reason, warnings) = match named {
        Some("auto") => ("auto chooses a tier for each request".to_owned(), Vec::new()),
        Some(name) => (format!("you named {name}"), Vec::new()),
        None => (
            format!("{USUAL} is the usual tier"),
            vec!["no tier has a model yet: run `tierbar setup`, or choose models in Settings > Models".to_owned()],
        ),
    };
    Choice {
        model: named.unwrap_or(USUAL).to_owned(),
        context_tokens: needs.context.max(USUAL_CONTEXT),
        tools: needs.tools,
        reason,
        warnings,
    }
}

fn reason(client: &Client, tier: &ClientTier, is_named: bool) -> String {
    let id = &tier.id;
    if is_named {
        return format!("you named {id}");
    }
    let has = match (tier.tools, tier.context_tokens) {
        (Some(true), Some(context)) => {
            format!("{id} supports tools and has a context of {context} tokens")
        }
        (_, Some(context)) => format!("{id} has a context of {context} tokens"),
        (Some(true), None) => format!("{id} supports tools"),
        (_, None) => format!("{id} has a model"),
    };
    let needs = match (client.needs.tools, client.needs.context) {
        (true, 0) => format!("{} needs tools", client.name),
        (true, context) => format!("{} needs tools and at least {context} tokens", client.name),
        (false, 0) => return has,
        (false, context) => format!("{} needs at least {context} tokens", client.name),
    };
    format!("{has}; {needs}")
}

fn warnings(client: &Client, tier: &ClientTier) -> Vec<String> {
    let (name, needs, id) = (client.name, client.needs, &tier.id);
    let mut warnings = Vec::new();
    if needs.tools && tier.tools == Some(false) {
        warnings.push(format!(
            "{id}'s model does not support tools; Tierbar describes them in the prompt, which works less well: \
             for {name}, choose a model with tools in Settings > Models"
        ));
    }
    if needs.tools && tier.tools.is_none() {
        warnings.push(format!(
            "{name} needs tools, and it is not known whether {id} supports them: try it first"
        ));
    }
    match tier.context_tokens {
        Some(has) if has < needs.context => warnings.push(format!(
            "{name} needs a context of at least {} tokens, and {id} has {has}: set `context = {}` for it in Settings > Tiers",
            needs.context, needs.context
        )),
        None if needs.context > 0 => warnings.push(format!(
            "{name} needs a context of at least {} tokens: check that of {id} with `tierbar status`",
            needs.context
        )),
        _ => {}
    }
    warnings
}
