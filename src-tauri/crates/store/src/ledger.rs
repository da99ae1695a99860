//! The table of what requests took.

use crate::{
    Store,
    sql::{self, Outcome, signed_summand},
};
use jiff::civil::Date;
use rusqlite::{Connection, params};
use tierbar_core::{
    Error,
    config::Dollars,
    ledger::{LedgerKey, RequestTotals},
};

const KEPT: i64 = 366;
/// The rows beyond which the oldest days are deleted: a year of 270 clients with a tier each.
const MOST: u32 = 100_000;
/// How many old rows are deleted at once: see the minutes' table.
const DROPPED_AT_ONCE: u32 = 64;

impl Store {
    /// Adds to what requests took. Days are kept for a year.
    pub async fn add_taken(&self, taken: Vec<(LedgerKey, RequestTotals)>) -> Result<(), Error> {
        let today = jiff::Zoned::now().date();
        self.write(move |change| add(change, today, &taken, MOST))
            .await
    }

    /// Returns what requests took on the last `days` days, today included, the newest first.
    pub async fn taken(&self, days: u32) -> Result<Vec<(LedgerKey, RequestTotals)>, Error> {
        let today = jiff::Zoned::now().date();
        let from = today.saturating_sub(jiff::Span::new().days(i64::from(days) - 1));
        self.read(move |connection| totals_since(connection, from))
            .await
    }
}

fn add(
    connection: &Connection,
    today: Date,
    taken: &[(LedgerKey, RequestTotals)],
    most: u32,
) -> Outcome<()> {
    for (key, taken) in taken {
        sql::run(
            connection,
            "INSERT INTO ledger (day, tier, elsewhere, client, chain, requests, prompt_tokens, completion_tokens,
                 unmeasured_ms, millijoules, paid)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (day, tier, elsewhere, client, chain) DO UPDATE SET
                 requests = requests + excluded.requests,
                 prompt_tokens = prompt_tokens + excluded.prompt_tokens,
                 completion_tokens = completion_tokens + excluded.completion_tokens,
                 unmeasured_ms = unmeasured_ms + excluded.unmeasured_ms,
                 millijoules = millijoules + excluded.millijoules,
                 paid = paid + excluded.paid",
            params![
                key.day,
                key.tier,
                key.elsewhere,
                key.client,
                key.chain,
                signed_summand(taken.requests),
                signed_summand(taken.prompt_tokens),
                signed_summand(taken.completion_tokens),
                signed_summand(taken.unmeasured_ms),
                signed_summand(taken.millijoules),
                signed_summand(taken.paid.0),
            ],
        )?;
    }
    let oldest = today.saturating_sub(jiff::Span::new().days(KEPT));
    sql::run(
        connection,
        "DELETE FROM ledger WHERE (day, tier, elsewhere, client, chain) IN
             (SELECT day, tier, elsewhere, client, chain FROM ledger WHERE day < ?1 ORDER BY day LIMIT ?2)",
        params![oldest.to_string(), DROPPED_AT_ONCE],
    )?;
    // The last day is kept whole.
    sql::run(
        connection,
        "DELETE FROM ledger WHERE day < (SELECT day FROM ledger ORDER BY day DESC LIMIT 1 OFFSET ?1)",
        [most],
    )?;
    Ok(())
}

fn totals_since(connection: &Connection, from: Date) -> Outcome<Vec<(LedgerKey, RequestTotals)>> {
    sql::all(
        connection,
        "SELECT day, tier, elsewhere, client, chain, requests, prompt_tokens, completion_tokens, unmeasured_ms,
             millijoules, paid
         FROM ledger WHERE day >= ?1 ORDER BY day DESC, tier, client, chain",
        [from.to_string()],
        |row| {
            let key = LedgerKey {
                day: row.get(0)?,
                tier: row.get(1)?,
                elsewhere: row.get(2)?,
                client: row.get(3)?,
                chain: row.get(4)?,
            };
            let taken = RequestTotals {
                requests: row.get(5)?,
                prompt_tokens: row.get(6)?,
                completion_tokens: row.get(7)?,
                unmeasured_ms: row.get(8)?,
                millijoules: row.get(9)?,
                paid: Dollars(row.get(10)?),
            };
            Ok((key, taken))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use jiff::civil::date;

    fn key(day: Date, client: &str) -> LedgerKey {
        LedgerKey {
            day: day.to_string(),
            tier: "fast".to_owned(),
            elsewhere: false,
            client: client.to_owned(),
            chain: String::new(),
        }
    }

    fn taken(tokens: u64) -> RequestTotals {
        RequestTotals {
            requests: 1,
            prompt_tokens: tokens,
            completion_tokens: 1,
            unmeasured_ms: 10,
            millijoules: 20,
            paid: Dollars(30),
        }
    }

    #[test]
    fn what_was_taken_is_summed_by_day_and_client_for_a_year() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        let (old, today) = (date(2025, 11, 20), date(2026, 11, 26));
        for (day, client, tokens) in [
            (old, "", 1),
            (date(2026, 11, 25), "", 5),
            (today, "", 7),
            (today, "", 8),
            (today, "phone", u64::MAX),
        ] {
            let one = [(key(day, client), taken(tokens))];
            database
                .write(|change| add(change, day, &one, MOST))
                .unwrap();
        }
        let all = database
            .read(|connection| totals_since(connection, old))
            .unwrap();
        assert_eq!(all.len(), 3, "the old day is gone");
        assert_eq!(all[0].0, key(today, ""));
        let twice = RequestTotals {
            requests: 2,
            prompt_tokens: 15,
            completion_tokens: 2,
            unmeasured_ms: 20,
            millijoules: 40,
            paid: Dollars(60),
        };
        assert_eq!(all[0].1, twice);
        assert_eq!(all[1].1.prompt_tokens, 1 << 50);
        let new = database
            .read(|connection| totals_since(connection, today))
            .unwrap();
        assert_eq!(new, all[..2]);
    }

    #[test]
    fn the_oldest_days_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("tierbar.db")).unwrap();
        for day in 1..=9 {
            let day = date(2026, 11, day);
            let both = ["", "phone"].map(|client| (key(day, client), taken(1)));
            database.write(|change| add(change, day, &both, 5)).unwrap();
        }
        let all = database
            .read(|connection| totals_since(connection, date(2026, 11, 1)))
            .unwrap();
        let days: Vec<_> = all.iter().map(|(key, _)| &key.day[8..]).collect();
        assert_eq!(days, ["09", "09", "08", "08", "07", "07"]);
    }
}
