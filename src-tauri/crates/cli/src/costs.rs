//! `tierbar costs`: tokens that tasks used on this machine, and tokens that no cloud had to process.

use crate::{
    client::{Client, admin, read},
    measure::table,
    output,
};
use std::path::PathBuf;
use tierbar_core::{
    Error,
    tasks::saved::{Costs, Spent},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of active days to show
    #[arg(long, default_value_t = 30)]
    days: u32,
    /// Print the costs as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = Client::running_or_own(home).await?;
    let days = args.days.to_string();
    let answer = client.get(&admin(&["costs"], &[("days", &days)])).await;
    client.close().await;
    let answer = answer?;
    if args.json {
        output::line(&answer.to_string());
        return Ok(());
    }
    let costs: Costs = read(answer)?;
    if costs.days.is_empty() {
        output::error_line("No tasks have run yet. To run one: tierbar summarize FILE");
        return Ok(());
    }
    output::write(&table_of(&costs));
    Ok(())
}

fn table_of(costs: &Costs) -> String {
    let row = |day: &str, task: &str, spent: &Spent| {
        vec![
            day.to_owned(),
            task.to_owned(),
            spent.answers.to_string(),
            spent.prompt_tokens.to_string(),
            spent.completion_tokens.to_string(),
            spent.saved_tokens.to_string(),
        ]
    };
    let mut rows = vec![
        [
            "Day",
            "Task",
            "Answers",
            "Tokens in",
            "Tokens out",
            "Tokens saved",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for day in &costs.days {
        for (task, spent) in &day.tasks {
            rows.push(row(&day.day, task.as_str(), spent));
        }
    }
    rows.push(row("Total", "", &costs.total));
    table(&rows, &[2, 3, 4, 5])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tierbar_core::tasks::{Task, saved::Day};

    #[test]
    fn the_last_row_is_the_total_of_all_days() {
        let spent = Spent {
            answers: 2,
            prompt_tokens: 900,
            completion_tokens: 40,
            saved_tokens: 300,
        };
        let costs = Costs::of(vec![Day {
            day: "2026-11-22".to_owned(),
            tasks: BTreeMap::from([(Task::Triage, spent)]),
        }]);
        assert_eq!(
            table_of(&costs),
            "Day         Task    Answers  Tokens in  Tokens out  Tokens saved\n\
             2026-11-22  triage        2        900          40           300\n\
             Total                     2        900          40           300\n"
        );
    }
}
