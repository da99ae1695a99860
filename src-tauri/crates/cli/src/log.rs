//! `tierbar log`: what happened to the tiers, and why.

use crate::{
    client::{Client, admin, read},
    output,
};
use futures_util::StreamExt;
use jiff::{Timestamp, tz::TimeZone};
use reqwest::Method;
use serde::Deserialize;
use sse_stream::SseByteStream;
use std::path::PathBuf;
use tierbar_core::{
    Code, Error, TierId,
    journal::{Entry, Kind},
};

/// As many does a host tell at once.
const PAGE: u32 = 1000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Go on with what happens from now on, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only what concerns this tier
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// How many of the last entries
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print each entry as a line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug)]
struct Log {
    tier: Option<TierId>,
    json: bool,
    zone: TimeZone,
    /// The last that was printed.
    last: u64,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let tier = args.tier.map(TierId::new).transpose();
    let tier = tier.map_err(|wrong| Error::new(Code::TierUnknown, wrong))?;
    let mut log = Log {
        tier,
        json: args.json,
        zone: TimeZone::system(),
        last: 0,
    };
    if args.follow {
        return log.follow(home, args.limit).await;
    }
    let newest_first = match Client::running(home.as_ref()) {
        Ok(client) => log.ask(&client, args.limit).await?,
        // What has happened is there, whether something runs or not.
        Err(_) => tierbar_host::past_log(home, log.tier.clone(), args.limit).await?,
    };
    if newest_first.is_empty() && !log.json {
        output::error_line("Nothing has happened yet.");
    }
    log.print(newest_first);
    Ok(())
}

impl Log {
    async fn follow(&mut self, home: Option<PathBuf>, limit: u32) -> Result<(), Error> {
        let mut most = limit;
        loop {
            let client = Client::running(home.as_ref())?;
            // First, so that nothing happens between the past and this.
            let events = client.send(Method::GET, "/tierbar/v1/events", None).await?;
            let past = self.ask(&client, most).await?;
            self.print(past);
            let mut events = SseByteStream::new(events.bytes_stream());
            while let Some(Ok(event)) = events.next().await {
                let (Some("log"), Some(data)) = (event.event.as_deref(), event.data) else {
                    continue;
                };
                let entry: Entry = read(serde_json::from_str(&data).unwrap_or_default())?;
                if self.tier.is_none() || self.tier == entry.what.tier {
                    self.print(vec![entry]);
                }
            }
            // Either the host has ended, or this was too slow and has missed something, which is kept.
            most = u32::MAX;
        }
    }

    /// The last of those that have not been printed, the newest first.
    async fn ask(&self, client: &Client, most: u32) -> Result<Vec<Entry>, Error> {
        #[derive(Deserialize)]
        struct Page {
            entries: Vec<Entry>,
        }
        let mut asked: Vec<Entry> = Vec::new();
        loop {
            let left = most.saturating_sub(u32::try_from(asked.len()).unwrap_or(u32::MAX));
            let limit = left.min(PAGE);
            if limit == 0 {
                return Ok(asked);
            }
            let before = asked.last().map(|entry| entry.id.to_string());
            let limit_text = limit.to_string();
            let mut query = vec![("limit", limit_text.as_str())];
            query.extend(before.as_deref().map(|before| ("before", before)));
            query.extend(self.tier.as_ref().map(|tier| ("tier", tier.as_str())));
            let Page { entries } = read(client.get(&admin(&["log"], &query)).await?)?;
            let told = entries.len();
            let new = entries.into_iter().take_while(|entry| entry.id > self.last);
            let before = asked.len();
            asked.extend(new);
            let all = asked.len() - before == told;
            if !all || u32::try_from(told).is_ok_and(|told| told < limit) {
                return Ok(asked);
            }
        }
    }

    fn print(&mut self, newest_first: Vec<Entry>) {
        for entry in newest_first.into_iter().rev() {
            // What was told while it was asked for comes twice.
            if entry.id <= self.last {
                continue;
            }
            self.last = entry.id;
            if self.json {
                output::line(&serde_json::to_string(&entry).unwrap_or_default());
            } else {
                output::line(&line(&entry, &self.zone));
            }
        }
    }
}

fn line(entry: &Entry, zone: &TimeZone) -> String {
    let at = i64::try_from(entry.at_ms).map(Timestamp::from_millisecond);
    let at = match at {
        Ok(Ok(at)) => at
            .to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        _ => "-".to_owned(),
    };
    // What a worker has said may have anything in it, a terminal's orders too.
    let sentence = entry.what.sentence.replace(char::is_control, " ");
    format!("{at}  {:<8}  {sentence}", word(entry.what.kind))
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Load => "load",
        Kind::Ready => "ready",
        Kind::Unload => "unload",
        Kind::Refusal => "refusal",
        Kind::Failure => "failure",
        Kind::Crash => "crash",
        Kind::Alarm => "alarm",
        Kind::Calm => "calm",
        Kind::StepDown => "step-down",
        Kind::Pause => "pause",
        Kind::Resume => "resume",
        Kind::Note => "note",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::journal::Happening;

    #[test]
    fn an_entry_is_one_line_in_local_time() {
        let mut entry = Entry {
            id: 1,
            at_ms: 1_784_548_865_000,
            what: Happening::new(Kind::Alarm, "memory is short: 900 MiB of 16.0 GiB"),
        };
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(
            line(&entry, &zone),
            "2026-07-20 14:01:05  alarm     memory is short: 900 MiB of 16.0 GiB"
        );
        entry.what.sentence = "it said:\n\u{1b}[2J".to_owned();
        entry.at_ms = u64::MAX;
        assert_eq!(line(&entry, &zone), "-  alarm     it said:  [2J");
    }
}
