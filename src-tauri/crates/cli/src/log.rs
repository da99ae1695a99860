//! `tierbar log`: the event log of tiers and memory.

use crate::{
    client::{Client, admin_path, read_answer},
    output,
};
use jiff::{Timestamp, tz::TimeZone};
use reqwest::Method;
use std::path::PathBuf;
use tierbar_core::{
    Code, Error, TierId,
    journal::{Entry, Filter, Kind},
    nearest::suggest,
    status::TierStatus,
};

/// The most entries that the host returns at once.
const PAGE: u32 = 1000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print new entries as they happen, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Show only entries of this tier
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Show only entries of this kind, such as unload or crash
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    kind: Option<Kind>,
    /// Show only entries with all of these words
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        hide_default_value = true
    )]
    find: String,
    /// Number of recent entries
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print each entry as a line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug)]
struct Log {
    filter: Filter,
    json: bool,
    zone: TimeZone,
    /// The ID of the last printed entry.
    last: u64,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let tier = args.tier.map(TierId::new).transpose();
    let tier = tier.map_err(|wrong| Error::new(Code::TierUnknown, wrong))?;
    let mut log = Log {
        filter: Filter::new(tier, args.kind, &args.find),
        json: args.json,
        zone: TimeZone::system(),
        last: 0,
    };
    if args.follow {
        return log.follow(home, args.limit).await;
    }
    let newest_first = match Client::running(home.as_ref()) {
        Ok(client) => {
            let entries = log.fetch(&client, args.limit).await?;
            // A tier that was removed still has its entries.
            if let (true, Some(tier)) = (entries.is_empty(), &log.filter.tier) {
                check_tier(tier.as_str(), &client.tiers().await?)?;
            }
            entries
        }
        // The log can be read while no host runs.
        Err(_) => tierbar_host::past_log(home, log.filter.clone(), args.limit).await?,
    };
    if newest_first.is_empty() && !log.json {
        output::error_line(&match &log.filter.tier {
            Some(tier) => format!("The event log has no entries of {tier}."),
            None if log.filter != Filter::default() => {
                "No entry of the event log matches.".to_owned()
            }
            None => "The event log is empty.".to_owned(),
        });
    }
    log.print(newest_first);
    Ok(())
}

fn check_tier(name: &str, tiers: &[TierStatus]) -> Result<(), Error> {
    let names: Vec<_> = tiers.iter().map(|tier| tier.id.as_str()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    let all = match names.as_slice() {
        [] => "there are no tiers".to_owned(),
        names => format!("the tiers are {}", names.join(", ")),
    };
    let message = format!("there is no tier \"{name}\"");
    Err(Error::new(Code::TierUnknown, message).hint(suggest(name, names, all)))
}

impl Log {
    async fn follow(&mut self, home: Option<PathBuf>, limit: u32) -> Result<(), Error> {
        let mut most = limit;
        loop {
            let client = Client::running(home.as_ref())?;
            // Subscribed first, so that no entry is lost between the log and the events.
            let events = client.events(Method::GET, "/tierbar/v1/events", None);
            let mut events = events.await?;
            let past = self.fetch(&client, most).await?;
            self.print(past);
            while let Ok(Some(event)) = events.next().await {
                if event.name.as_deref() != Some("log") {
                    continue;
                }
                let entry: Entry = read_answer(event.data)?;
                if self.filter.matches(&entry.what) {
                    self.print(vec![entry]);
                }
            }
            // The host has quit, or this client fell behind; what it missed is in the log.
            most = u32::MAX;
        }
    }

    /// Returns at most `most` of the entries that have not been printed, newest first.
    async fn fetch(&self, client: &Client, most: u32) -> Result<Vec<Entry>, Error> {
        let words = self.filter.words().join(" ");
        let mut fetched: Vec<Entry> = Vec::new();
        loop {
            let left = most.saturating_sub(u32::try_from(fetched.len()).unwrap_or(u32::MAX));
            let limit = left.min(PAGE);
            if limit == 0 {
                return Ok(fetched);
            }
            let limit_text = limit.to_string();
            let before = fetched.last().map(|entry| entry.id.to_string());
            let mut query = vec![("limit", limit_text.as_str()), ("words", words.as_str())];
            query.extend(before.as_deref().map(|before| ("before", before)));
            let Filter { tier, kind, .. } = &self.filter;
            query.extend(tier.as_ref().map(|tier| ("tier", tier.as_str())));
            query.extend(kind.map(|kind| ("kind", kind.as_str())));
            let path = admin_path(&["log"], &query);
            let mut page: Vec<Entry> = client.list(&path, "entries").await?;
            let is_full = page.len() == limit as usize;
            let all_new = page.iter().all(|entry| entry.id > self.last);
            page.retain(|entry| entry.id > self.last);
            fetched.extend(page);
            if !(all_new && is_full) {
                return Ok(fetched);
            }
        }
    }

    fn print(&mut self, newest_first: Vec<Entry>) {
        for entry in newest_first.into_iter().rev() {
            // An entry written while the log was read comes twice.
            if entry.id <= self.last {
                continue;
            }
            self.last = entry.id;
            if self.json {
                output::write_line(&serde_json::to_string(&entry).unwrap_or_default());
            } else {
                output::write_line(&render_entry(&entry, &self.zone));
            }
        }
    }
}

fn render_entry(entry: &Entry, zone: &TimeZone) -> String {
    let at = i64::try_from(entry.at_ms).map(Timestamp::from_millisecond);
    let at = match at {
        Ok(Ok(at)) => at.to_zoned(zone.clone()).strftime("%F %T").to_string(),
        _ => "-".to_owned(),
    };
    // A worker's message may contain terminal escape sequences.
    let sentence = entry.what.sentence.replace(char::is_control, " ");
    format!("{at}  {:<8}  {sentence}", kind_name(entry.what.kind))
}

/// Reads a kind as the log prints it.
fn parse_kind(text: &str) -> Result<Kind, String> {
    serde_json::from_value(text.replace('-', "_").into())
        .map_err(|_| "this is no kind of event; `tierbar log` shows them".to_owned())
}

fn kind_name(kind: Kind) -> String {
    kind.as_str().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tier_status;
    use tierbar_core::journal::LogEvent;

    #[test]
    fn a_tier_that_does_not_exist_is_refused() {
        let error = check_tier("fats", &[]).unwrap_err();
        assert_eq!(error.code, Code::TierUnknown);
        assert_eq!(error.hint.as_deref(), Some("there are no tiers"));
        let tiers = [tier_status(&serde_json::json!({"id": "fast"}))];
        assert!(check_tier("fast", &tiers).is_ok());
        let hint = check_tier("fats", &tiers).unwrap_err().hint.unwrap();
        assert_eq!(hint, "did you mean fast? the tiers are fast");
    }

    #[test]
    fn a_kind_is_read_as_it_is_printed() {
        for known in [Kind::StepDown, Kind::Load, Kind::Calm] {
            assert_eq!(parse_kind(&kind_name(known)), Ok(known));
        }
        assert!(parse_kind("tea").is_err());
    }

    #[test]
    fn an_entry_is_one_line_in_local_time() {
        let mut entry = Entry {
            id: 1,
            at_ms: 1_784_548_865_000,
            what: LogEvent::new(Kind::Alarm, "memory is low: 900 MiB of 16.0 GiB"),
        };
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(
            render_entry(&entry, &zone),
            "2026-07-20 14:01:05  alarm     memory is low: 900 MiB of 16.0 GiB"
        );
        entry.what.sentence = "the log:\n\u{1b}[2J".to_owned();
        entry.at_ms = u64::MAX;
        assert_eq!(render_entry(&entry, &zone), "-  alarm     the log:  [2J");
    }
}
