//! `tierbar requests`: the last requests, with their times and tokens.

use crate::{
    client::{Client, admin_path, read},
    measure::render_table,
    output,
};
use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use std::path::PathBuf;
use tierbar_core::{
    Error,
    requests::{RequestOutcome, RequestRecord},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of recent requests
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Print the requests as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Page {
    requests: Vec<RequestRecord>,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = Client::running(home.as_ref())?;
    let limit = args.limit.to_string();
    let answer = client
        .get(&admin_path(&["requests"], &[("limit", &limit)]))
        .await?;
    if args.json {
        output::write_line(&answer.to_string());
        return Ok(());
    }
    let Page { requests } = read(answer)?;
    if requests.is_empty() {
        output::error_line("No requests yet. They are kept in memory until Tierbar quits.");
        return Ok(());
    }
    output::write(&table_of(&requests, &TimeZone::system()));
    Ok(())
}

fn table_of(requests: &[RequestRecord], zone: &TimeZone) -> String {
    let headings = [
        "Time", "Client", "Path", "Tier", "In", "Out", "Wait", "First", "Total", "Status",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for record in requests {
        let number =
            |figure: Option<u64>| figure.map_or("-".to_owned(), |tokens| tokens.to_string());
        let at = i64::try_from(record.at_ms).map(Timestamp::from_millisecond);
        rows.push(vec![
            match at {
                Ok(Ok(at)) => at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string(),
                _ => "-".to_owned(),
            },
            record.client.clone().unwrap_or_else(|| "-".to_owned()),
            record.path.clone(),
            record
                .tier
                .as_ref()
                .map_or("-".to_owned(), ToString::to_string),
            number(record.prompt_tokens),
            number(record.completion_tokens),
            record.waited_ms.map_or("-".to_owned(), format_seconds),
            record.first_token_ms.map_or("-".to_owned(), format_seconds),
            format_seconds(record.duration_ms),
            match (record.outcome, &record.code) {
                (RequestOutcome::Answered, _) => "answered".to_owned(),
                (RequestOutcome::Cancelled, _) => "canceled".to_owned(),
                (RequestOutcome::Failed, Some(code)) => code.clone(),
                (RequestOutcome::Failed, None) => "failed".to_owned(),
            },
        ]);
    }
    render_table(&rows, &[4, 5, 6, 7, 8])
}

fn format_seconds(milliseconds: u64) -> String {
    format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::TierId;

    #[test]
    fn a_request_is_a_line_with_its_times_and_its_end() {
        let answered = RequestRecord {
            at_ms: 1_784_548_865_000,
            path: "/v1/messages".to_owned(),
            client: Some("phone".to_owned()),
            tier: Some(TierId::new("fast").unwrap()),
            prompt_tokens: Some(812),
            completion_tokens: Some(64),
            waited_ms: Some(40),
            first_token_ms: Some(1730),
            duration_ms: 6200,
            outcome: RequestOutcome::Answered,
            ..RequestRecord::default()
        };
        let failed = RequestRecord {
            at_ms: answered.at_ms,
            path: "/api/chat".to_owned(),
            outcome: RequestOutcome::Failed,
            code: Some("over_budget".to_owned()),
            ..RequestRecord::default()
        };
        let shown = table_of(&[answered, failed], &TimeZone::UTC);
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1].join(" "),
            "12:01:05 phone /v1/messages fast 812 64 0.0 s 1.7 s 6.2 s answered"
        );
        assert_eq!(
            lines[2].join(" "),
            "12:01:05 - /api/chat - - - - - 0.0 s over_budget"
        );
    }
}
