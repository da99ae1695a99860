//! `tierbar costs`: what tasks took here, and what no cloud was sent.

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
    /// Days that are shown, of those with any
    #[arg(long, default_value_t = 30)]
    days: u32,
    /// Print JSON
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
        output::error_line("No task has been done yet.");
        return Ok(());
    }
    output::write(&shown(&costs));
    Ok(())
}

fn shown(costs: &Costs) -> String {
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
        ["Day", "Task", "Answers", "Read", "Written", "Saved"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for day in &costs.days {
        for (task, spent) in &day.tasks {
            rows.push(row(&day.day, task.as_str(), spent));
        }
    }
    rows.push(row("all", "", &costs.total));
    table(&rows, &[2, 3, 4, 5])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tierbar_core::tasks::{Task, saved::Day};

    #[test]
    fn days_are_rows_with_their_sum_at_the_end() {
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
            shown(&costs),
            "Day         Task    Answers  Read  Written  Saved\n\
             2026-11-22  triage        2   900       40    300\n\
             all                       2   900       40    300\n"
        );
    }
}
