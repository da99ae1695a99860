//! `tierbar costs`: tokens, energy and money of requests, tokens that tasks saved, and when a machine has paid for itself.

mod break_even;

use crate::{
    client::{Client, admin_path, read_answer, with_host},
    measure::render_table,
    output,
};
use std::{collections::BTreeMap, path::PathBuf};
use tierbar_core::{
    Error,
    ledger::{LedgerEntry, LedgerReport, RequestCosts},
};
use tierbar_tasks::saved::{Costs, TaskSavings};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Number of days to show, up to today
    #[arg(long, default_value_t = 30, global = true)]
    days: u32,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the tokens and costs of requests by day, tier and client
    Requests,
    /// Show the tokens that tasks used and saved
    Tasks,
    /// Calculate when a machine pays for itself
    BreakEven(break_even::Args),
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let days = args.days.to_string();
    let query = [("days", days.as_str())];
    with_host(home, async |client| match args.command {
        None | Some(Command::Requests) => {
            let answer = client.get(&admin_path(&["ledger"], &query)).await?;
            output::write_answer(args.json, answer, |report| {
                render_report(
                    &report,
                    "No requests yet. To ask something: tierbar chat",
                    table_of_requests,
                )
            })
        }
        Some(Command::Tasks) => {
            let answer = client.get(&admin_path(&["costs"], &query)).await?;
            output::write_answer(args.json, answer, |costs| render_tasks(&costs))
        }
        Some(Command::BreakEven(inputs)) => break_even::run(client, &inputs, args.json).await,
    })
    .await
}

/// Returns the requests of the last 30 days.
async fn fetch_month(client: &Client) -> Result<LedgerReport, Error> {
    read_answer(client.get("/tierbar/v1/ledger?days=30").await?)
}

pub(crate) async fn show(client: &Client) -> Result<(), Error> {
    let report = fetch_month(client).await?;
    output::write(&render_report(&report, "No requests yet.", table_of_tiers));
    Ok(())
}

/// `none`, to stderr, if there are no requests.
fn render_report(report: &LedgerReport, none: &str, table: fn(&LedgerReport) -> String) -> String {
    if report.entries.is_empty() {
        output::error_line(none);
        return String::new();
    }
    table(report) + &render_notes(&report.total)
}

const FIGURES: [&str; 7] = [
    "Requests",
    "Tokens in",
    "Tokens out",
    "Energy",
    "Electricity",
    "Paid",
    "Cloud",
];

fn figures(costs: &RequestCosts) -> [String; 7] {
    [
        costs.requests.to_string(),
        costs.prompt_tokens.to_string(),
        costs.completion_tokens.to_string(),
        format_energy(costs),
        format_dollars(costs.electricity),
        format_dollars(Some(costs.paid)),
        format_dollars(costs.cloud),
    ]
}

fn table_of_requests(report: &LedgerReport) -> String {
    // The chain, if there is one, tells apart rows of the same tier.
    let has_chains = report.entries.iter().any(|entry| entry.chain.is_some());
    let names = if has_chains { 4 } else { 3 };
    let head = ["Day", "Tier", "Client", "Chain"];
    let mut rows = vec![table_row(&head[..names], FIGURES.map(str::to_owned))];
    for entry in &report.entries {
        let client = entry.client.as_deref().unwrap_or("-");
        let chain = entry.chain.as_deref().unwrap_or("-");
        let all = [entry.day.as_str(), entry.tier.as_str(), client, chain];
        rows.push(table_row(&all[..names], figures(&entry.costs)));
    }
    rows.push(table_row(
        &["Total", "", "", ""][..names],
        figures(&report.total),
    ));
    let right: Vec<usize> = (names..names + FIGURES.len()).collect();
    render_table(&rows, &right)
}

fn table_row(names: &[&str], figures: [String; 7]) -> Vec<String> {
    let names = names.iter().map(|name| (*name).to_owned());
    names.chain(figures).collect()
}

fn table_of_tiers(report: &LedgerReport) -> String {
    let mut tiers: BTreeMap<&str, Vec<&LedgerEntry>> = BTreeMap::new();
    for entry in &report.entries {
        tiers.entry(&entry.tier).or_default().push(entry);
    }
    let sum = |entries: &[&LedgerEntry], of: fn(&RequestCosts) -> u64| {
        let figures = entries.iter().map(|entry| of(&entry.costs));
        figures.sum::<u64>().to_string()
    };
    let headings = ["Tier", "Requests", "Tokens in", "Tokens out"];
    let mut rows = vec![headings.map(str::to_owned)];
    for (tier, entries) in tiers {
        rows.push([
            tier.to_owned(),
            sum(&entries, |costs| costs.requests),
            sum(&entries, |costs| costs.prompt_tokens),
            sum(&entries, |costs| costs.completion_tokens),
        ]);
    }
    render_table(&rows, &[1, 2, 3])
}

/// What the sums mean, and what is missing for others.
fn render_notes(total: &RequestCosts) -> String {
    let mut lines = Vec::new();
    let estimated = total.estimated_joules.unwrap_or_default();
    if total.estimated_joules.is_none() {
        lines.push(
            "This machine does not measure its energy. To estimate it: tierbar config set costs.busy_watts WATTS"
                .to_owned(),
        );
    } else if estimated > 0.0 {
        lines.push("~ is an estimate: costs.busy_watts times the time of the requests.".to_owned());
    }
    if total.cloud.is_none() {
        lines.push(
            "For the price of the same tokens in a cloud: tierbar config set costs.cloud_input_price DOLLARS, and \
             costs.cloud_output_price, for a million tokens"
                .to_owned(),
        );
        if total.paid > 0.0 {
            let paid = format_dollars(Some(total.paid));
            lines.push(format!("Endpoints charged {paid}."));
        }
    } else {
        let cloud = format_dollars(total.cloud);
        let paid = format_dollars(Some(total.paid));
        let electricity = total.electricity.map_or_else(String::new, |dollars| {
            format!(" Electricity took {}.", format_dollars(Some(dollars)))
        });
        lines.push(format!(
            "At your cloud's prices, what this machine answered would have cost {cloud}. Endpoints charged {paid}.{electricity}"
        ));
    }
    lines.join("\n") + "\n"
}

/// Watt-hours; `~` marks an estimate.
fn format_energy(costs: &RequestCosts) -> String {
    const JOULES_PER_WH: f64 = 3600.0;
    let Some(estimated) = costs.estimated_joules else {
        return "-".to_owned();
    };
    let hours = (costs.measured_joules + estimated) / JOULES_PER_WH;
    let mark = if estimated > 0.0 { "~" } else { "" };
    format!("{mark}{hours:.2} Wh")
}

fn format_dollars(dollars: Option<f64>) -> String {
    match dollars {
        None => "-".to_owned(),
        Some(dollars) if dollars > 0.0 && dollars < 0.01 => format!("${dollars:.4}"),
        Some(dollars) if dollars < 0.0 => format!("-${:.2}", -dollars),
        Some(dollars) => format!("${dollars:.2}"),
    }
}

fn render_tasks(costs: &Costs) -> String {
    if costs.days.is_empty() {
        output::error_line("No tasks have run yet. To run one: tierbar summarize FILE");
        return String::new();
    }
    let row = |day: &str, task: &str, spent: &TaskSavings| {
        [
            day.to_owned(),
            task.to_owned(),
            spent.answers.to_string(),
            spent.prompt_tokens.to_string(),
            spent.completion_tokens.to_string(),
            spent.saved_tokens.to_string(),
        ]
    };
    let headings = [
        "Day",
        "Task",
        "Answers",
        "Tokens in",
        "Tokens out",
        "Tokens saved",
    ];
    let mut rows = vec![headings.map(str::to_owned)];
    for day in &costs.days {
        for (task, spent) in &day.tasks {
            rows.push(row(&day.day, task.as_str(), spent));
        }
    }
    rows.push(row("Total", "", &costs.total));
    render_table(&rows, &[2, 3, 4, 5])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_tasks::{Task, saved::Day};

    #[test]
    fn the_last_row_is_the_total_of_all_days() {
        let spent = TaskSavings {
            answers: 2,
            prompt_tokens: 900,
            completion_tokens: 40,
            saved_tokens: 300,
        };
        let costs = Costs::from_days(vec![Day {
            day: "2026-11-22".to_owned(),
            tasks: BTreeMap::from([(Task::Triage, spent)]),
        }]);
        assert_eq!(
            render_tasks(&costs),
            "Day         Task    Answers  Tokens in  Tokens out  Tokens saved\n\
             2026-11-22  triage        2        900          40           300\n\
             Total                     2        900          40           300\n"
        );
    }

    fn report() -> LedgerReport {
        let costs = RequestCosts {
            requests: 3,
            prompt_tokens: 1200,
            completion_tokens: 340,
            estimated_joules: Some(7200.0),
            electricity: Some(0.0006),
            cloud: Some(0.0064),
            ..RequestCosts::default()
        };
        LedgerReport {
            entries: vec![LedgerEntry {
                day: "2026-11-26".to_owned(),
                tier: "fast".to_owned(),
                elsewhere: false,
                client: None,
                chain: None,
                costs,
            }],
            total: costs,
            days: 1,
        }
    }

    #[test]
    fn estimates_are_marked_and_unknown_money_is_a_dash() {
        let mut report = report();
        let shown = table_of_requests(&report);
        assert!(shown.contains("~2.00 Wh"), "{shown}");
        assert!(shown.contains("$0.0064"), "{shown}");
        assert!(render_notes(&report.total).starts_with("~ is an estimate"));
        report.total.estimated_joules = None;
        report.total.cloud = None;
        assert_eq!(format_energy(&report.total), "-");
        let notes = render_notes(&report.total);
        assert!(notes.contains("costs.busy_watts"), "{notes}");
        assert!(notes.contains("costs.cloud_input_price"), "{notes}");
    }

    #[test]
    fn rows_of_a_chain_name_it() {
        let mut report = report();
        assert!(!table_of_requests(&report).contains("Chain"));
        let mut chained = report.entries[0].clone();
        chained.chain = Some("nightly".to_owned());
        report.entries.push(chained);
        let shown = table_of_requests(&report);
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[0].contains("Client  Chain"), "{shown}");
        assert!(lines[2].contains("nightly"), "{shown}");
    }

    #[test]
    fn tiers_are_summed_over_days() {
        let mut report = report();
        report.entries.push(report.entries[0].clone());
        assert_eq!(
            table_of_tiers(&report),
            "Tier  Requests  Tokens in  Tokens out\n\
             fast         6       2400         680\n"
        );
    }
}
