//! The table of what agents may do in every chat.

use crate::Store;
use rusqlite::{Connection, Transaction};
use tierbar_core::Error;

impl Store {
    /// Returns what was allowed, the oldest first, each as JSON.
    pub async fn agent_grants(&self) -> Result<Vec<String>, Error> {
        self.call(|database| database.read(list)).await
    }

    /// Stores what is allowed now, in place of all that was.
    pub async fn put_agent_grants(&self, grants: Vec<String>) -> Result<(), Error> {
        self.call(move |database| database.write(|change| put(change, &grants)))
            .await
    }
}

fn list(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached("SELECT content FROM agent_grants ORDER BY position")?
        .query_map([], |row| row.get(0))?
        .collect()
}

fn put(change: &Transaction, grants: &[String]) -> rusqlite::Result<()> {
    change.execute("DELETE FROM agent_grants", [])?;
    let mut insert = change.prepare_cached("INSERT INTO agent_grants (content) VALUES (?1)")?;
    for grant in grants {
        insert.execute([grant])?;
    }
    Ok(())
}
