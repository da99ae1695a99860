//! `tierbar requests`: the last requests, with their times and tokens.

use crate::{
    client::{Client, admin_path, read_field},
    measure::render_table,
    output,
};
use jiff::{Timestamp, tz::TimeZone};
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

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = Client::running(home.as_ref())?;
    let limit = args.limit.to_string();
    let path = admin_path(&["requests"], &[("limit", &limit)]);
    let answer = client.get(&path).await?;
    if args.json {
        output::write_json(&answer);
        return Ok(());
    }
    let requests: Vec<RequestRecord> = read_field(answer, "requests")?;
    if requests.is_empty() {
        output::error_line("No requests yet. They are kept in memory until Tierbar quits.");
        return Ok(());
    }
    output::write(&table_of(&requests, &TimeZone::system()));
    Ok(())
}

fn table_of(requests: &[RequestRecord], zone: &TimeZone) -> String {
    let mut rows = vec![
        [
            "Time", "Client", "Path", "Tier", "In", "Out", "Wait", "First", "Total", "Status",
        ]
        .map(str::to_owned),
    ];
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    for record in requests {
        let at = i64::try_from(record.at_ms).map(Timestamp::from_millisecond);
        rows.push([
            match at {
                Ok(Ok(at)) => at.to_zoned(zone.clone()).strftime("%T").to_string(),
                _ => "-".to_owned(),
            },
            or_dash(record.client.clone()),
            record.path.clone(),
            or_dash(record.tier.as_ref().map(ToString::to_string)),
            or_dash(record.prompt_tokens.map(|tokens| tokens.to_string())),
            or_dash(record.completion_tokens.map(|tokens| tokens.to_string())),
            or_dash(record.waited_ms.map(format_seconds)),
            or_dash(record.first_token_ms.map(format_seconds)),
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
