//! The table of presets: settings of chats under a name.

use crate::{
    Store,
    json::{of_json, to_json},
};
use rusqlite::{Connection, params};
use tierbar_chats::settings::{AnswerSettings, Preset, own_name};
use tierbar_core::{Code, Error};

/// More than anyone chooses from.
const MOST: u32 = 200;

impl Store {
    /// Returns the presets that were saved, by name.
    pub async fn presets(&self) -> Result<Vec<Preset>, Error> {
        self.call(|database| database.read(list)).await
    }

    /// Saves a preset, in place of one of the same name.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for a name or a value out of bounds, [`Code::Conflict`] for the name of one that comes with Tierbar and
    /// for more than 200.
    pub async fn put_preset(&self, name: &str, settings: AnswerSettings) -> Result<Preset, Error> {
        settings.check()?;
        let preset = Preset {
            name: own_name(name)?.to_owned(),
            built_in: false,
            settings,
        };
        let kept = preset.clone();
        let put = self.call(move |database| database.write(|change| put(change, &kept)));
        if !put.await? {
            let message = format!("there are {MOST} presets");
            return Err(Error::new(Code::Conflict, message).hint("delete one first"));
        }
        Ok(preset)
    }

    /// Deletes a preset.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::Conflict`] for one that comes with Tierbar.
    pub async fn delete_preset(&self, name: &str) -> Result<(), Error> {
        let name = own_name(name)?.to_owned();
        let missing = Error::new(Code::NotFound, format!("there is no preset \"{name}\""));
        let removed = self.call(move |database| database.write(|change| remove(change, &name)));
        if removed.await? { Ok(()) } else { Err(missing) }
    }
}

fn list(connection: &Connection) -> rusqlite::Result<Vec<Preset>> {
    connection
        .prepare_cached("SELECT name, settings FROM presets ORDER BY name COLLATE NOCASE, name")?
        .query_map([], |row| {
            let settings: String = row.get(1)?;
            Ok(Preset {
                name: row.get(0)?,
                built_in: false,
                settings: of_json(1, &settings)?,
            })
        })?
        .collect()
}

/// Returns whether there is room for it.
fn put(connection: &Connection, preset: &Preset) -> rusqlite::Result<bool> {
    let others: u32 = connection.query_row(
        "SELECT count(*) FROM presets WHERE name <> ?1",
        [&preset.name],
        |row| row.get(0),
    )?;
    if others >= MOST {
        return Ok(false);
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO presets (name, settings) VALUES (?1, ?2)")?
        .execute(params![preset.name, to_json(&preset.settings)?])?;
    Ok(true)
}

/// Returns whether it existed.
fn remove(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let removed = connection
        .prepare_cached("DELETE FROM presets WHERE name = ?1")?
        .execute([name])?;
    Ok(removed > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_presets_than_one_chooses_from_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tierbar.db")).unwrap();
        let put = async |name: u32| {
            let settings = AnswerSettings::default();
            store.put_preset(&format!("preset {name}"), settings).await
        };
        for name in 0..MOST {
            put(name).await.unwrap();
        }
        assert_eq!(put(MOST).await.unwrap_err().code, Code::Conflict);
        put(0).await.unwrap();
        store.delete_preset("preset 0").await.unwrap();
        put(MOST).await.unwrap();
    }
}
