//! `tierbar route`: what `auto` would do with a question, without answering it.

use crate::{
    client::{admin_path, with_host},
    output,
};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Error, TierId, bad_request};
use tierbar_routing::Level;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Question
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// Ask the fast tier's model too, even if the rules are sure; it is loaded for that
    #[arg(long)]
    classify: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Route {
    level: Level,
    tier: Option<TierId>,
    why: Option<String>,
    rules: Rules,
    classifier: Option<Classifier>,
}

#[derive(Debug, Deserialize)]
struct Rules {
    because: String,
}

#[derive(Debug, Deserialize)]
struct Classifier {
    level: Level,
    believed: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let text = args.text.join(" ");
    if text.trim().is_empty() {
        return Err(bad_request("the question is empty"));
    }
    let question = json!({"messages": [{"role": "user", "content": text}]});
    let query: &[(&str, &str)] = if args.classify {
        &[("classify", "always")]
    } else {
        &[]
    };
    let path = admin_path(&["route"], query);
    let answer = with_host(home, async |client| client.post(&path, &question).await).await?;
    output::write_answer(args.json, answer, |route| describe(&route))
}

fn describe(route: &Route) -> String {
    let mut text = match &route.tier {
        Some(tier) => format!("{tier} would answer.\n"),
        None => "No tier has a model that could answer.\n".to_owned(),
    };
    // The host's reason begins with that of the rules, which has a line of its own.
    let rule = format!("{}; ", route.rules.because);
    if let Some(why) = &route.why {
        let why = why.strip_prefix(&rule).unwrap_or(why);
        text += &format!("  {why}\n");
    }
    text += &format!(
        "  The question is {}: {}\n",
        route.level.word(),
        route.rules.because
    );
    if let Some(Classifier { level, believed }) = &route.classifier {
        let level = level.word();
        let counts = match believed {
            true => "counts",
            false => "does not count",
        };
        text += &format!("  The fast tier's model says {level}, which {counts}.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_explained() {
        let route = json!({
            "level": "hard", "tier": "heavy", "why": "it asks for a proof; heavy is loaded", "prompt_tokens": 9, "answer_tokens": 300,
            "rules": {"level": "hard", "sure": true, "because": "it asks for a proof"},
            "classifier": {"level": "medium", "margin": 0.1, "believed": false},
        });
        assert_eq!(
            describe(&serde_json::from_value(route).unwrap()),
            "heavy would answer.\n  heavy is loaded\n  The question is hard: it asks for a proof\n  The fast tier's model \
             says medium, which does not count.\n"
        );
    }
}
