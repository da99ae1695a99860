//! The table of what agents may do in every chat.

use crate::{Store, sql};
use tierbar_core::Error;

impl Store {
    /// Returns what was allowed, the oldest first, each as JSON.
    pub async fn agent_grants(&self) -> Result<Vec<String>, Error> {
        let all = "SELECT content FROM agent_grants ORDER BY position";
        self.all(all, [], |row| row.get(0)).await
    }

    /// Stores what is allowed now, in place of all that was.
    pub async fn put_agent_grants(&self, grants: Vec<String>) -> Result<(), Error> {
        self.write(move |change| {
            sql::run(change, "DELETE FROM agent_grants", [])?;
            for grant in grants {
                sql::run(
                    change,
                    "INSERT INTO agent_grants (content) VALUES (?1)",
                    [grant],
                )?;
            }
            Ok(())
        })
        .await
    }
}
