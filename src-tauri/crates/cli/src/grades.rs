//! `tierbar grades`: rates of graded answers, what `auto` has learned from them, and their export.

use crate::{
    Group,
    client::{Client, admin_path, with_host},
    confirm::confirm,
    measure::render_table,
    output,
};
use reqwest::Method;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Code, Error, TierId};
use tierbar_routing::{
    grade::{GradeCounts, GradeReport, Share},
    learned::LearnedLevel,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Show the share of good answers by model, tier and level, and what auto has learned
    List,
    /// Print graded answers as JSON Lines for preference tuning
    Export {
        /// Lines to print: pairs (prompt, chosen, rejected), labels (prompt, completion, label), or all
        #[arg(long, value_name = "FORM", value_parser = ["all", "pairs", "labels"], default_value = "all")]
        form: String,
    },
    /// Reset what auto has learned; grades are kept
    Reset {
        /// Reset without confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    with_host(home, async |client| match args.command {
        None | Some(Command::List) => list(client, args.json).await,
        Some(Command::Export { form }) => export(client, &form).await,
        Some(Command::Reset { yes }) => reset(client, yes, args.json).await,
    })
    .await
}

pub(crate) async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let answer = client.get("/tierbar/v1/grades").await?;
    output::write_answer(as_json, answer, |report| render(&report))
}

async fn export(client: &Client, form: &str) -> Result<(), Error> {
    let path = admin_path(&["grades", "export"], &[("form", form)]);
    let answer = client.send(Method::GET, &path, None).await?;
    let lines = answer.text().await.map_err(|error| {
        let message = format!("the export was interrupted: {error}");
        Error::new(Code::Unreachable, message)
    })?;
    if lines.is_empty() {
        output::error_line(match form {
            "pairs" => "No question has both a good and a bad answer.",
            _ => NONE,
        });
    }
    output::write(&lines);
    Ok(())
}

async fn reset(client: &Client, yes: bool, as_json: bool) -> Result<(), Error> {
    let question = "Reset what auto has learned? Grades are kept.";
    confirm(yes, question, "add --yes", as_json).await?;
    let path = "/tierbar/v1/grades/reset";
    client.post(path, &json!({})).await?;
    let sentence = "auto goes by its rules alone. New grades count again.";
    output::write_outcome(as_json, &json!({"reset": true}), sentence);
    Ok(())
}

const NONE: &str = "No answer is graded yet. In a chat, grade the last answer with /good or /bad.";

fn render(report: &GradeReport) -> String {
    if report.groups.is_empty() {
        return format!("{NONE}\n");
    }
    let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let mut rows = vec![["Model", "Tier", "Question", "Good", "95 % interval"].map(str::to_owned)];
    for group in &report.groups {
        rows.push([
            cell(&group.model),
            cell(&group.tier),
            group.level.word().to_owned(),
            describe(group.counts, group.share),
            format_interval(group.share),
        ]);
    }
    rows.push([
        "Total".to_owned(),
        String::new(),
        String::new(),
        describe(report.counts, report.share),
        format_interval(report.share),
    ]);
    let mut text = render_table(&rows, &[3, 4]);
    text.push('\n');
    for level in &report.routing.levels {
        text += &format!("{}\n", describe_learned(level, report.routing.enough));
    }
    text
}

/// A rate with the number of answers that it is of.
fn describe(counts: GradeCounts, share: Option<Share>) -> String {
    let rate = share.map_or_else(|| "-".to_owned(), |share| format_percent(share.good));
    format!("{rate} of {}", counts.total())
}

fn format_interval(share: Option<Share>) -> String {
    share.map_or("-".to_owned(), |Share { low, high, .. }| {
        format!("{}-{}", format_percent(low), format_percent(high))
    })
}

fn format_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn describe_learned(level: &LearnedLevel, enough: u64) -> String {
    let word = level.level.word();
    if level.routed_as != level.level {
        let tier = level.routed_as.tier();
        return format!(
            "{} sends {word} questions to {tier}, by your grades.",
            TierId::AUTO
        );
    }
    let grades = level.own_tier.total().max(level.smaller_tier.total());
    if grades < enough {
        return format!("{word} questions: {grades} of {enough} grades to learn from.");
    }
    format!("{word} questions: {grades} grades, which change nothing.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_routing::{Level, grade::GradeGroup};

    #[test]
    fn each_rate_has_its_number_of_answers() {
        let counts = GradeCounts { good: 3, bad: 22 };
        let group = GradeGroup {
            model: Some("small".to_owned()),
            tier: Some("fast".to_owned()),
            quant: None,
            level: Level::Simple,
            counts,
            learned: counts,
            share: counts.share(),
        };
        assert_eq!(
            render(&GradeReport::from_groups(vec![group])),
            "Model  Tier  Question        Good  95 % interval\n\
             small  fast  simple    12 % of 25       4 %-30 %\n\
             Total                  12 % of 25       4 %-30 %\n\
             \n\
             auto sends simple questions to primary, by your grades.\n\
             medium questions: 0 of 20 grades to learn from.\n\
             hard questions: 0 of 20 grades to learn from.\n"
        );
        assert!(render(&GradeReport::from_groups(Vec::new())).contains("/good"));
    }
}
