//! The table of presets: settings of chats under a name.

use crate::{
    Store,
    sql::{self, Json},
};
use rusqlite::params;
use tierbar_chats::settings::{AnswerSettings, Preset, own_name};
use tierbar_core::{Code, Error};

/// More than anyone chooses from.
const MOST: u32 = 200;

impl Store {
    /// Returns the presets that were saved, by name.
    pub async fn presets(&self) -> Result<Vec<Preset>, Error> {
        let all = "SELECT name, settings FROM presets ORDER BY name COLLATE NOCASE, name";
        self.all(all, [], |row| {
            Ok(Preset {
                name: row.get(0)?,
                built_in: false,
                settings: row.get::<_, Json<_>>(1)?.0,
            })
        })
        .await
    }

    /// Saves a preset, in place of one of the same name.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for a name or a value out of bounds, [`Code::Conflict`] for the name of one that comes with Tierbar and
    /// for more than 200.
    pub async fn put_preset(&self, name: &str, settings: AnswerSettings) -> Result<Preset, Error> {
        settings.check()?;
        let name = own_name(name)?.to_owned();
        self.write(move |change| {
            let others = "SELECT count(*) FROM presets WHERE name <> ?1";
            let others: u32 = sql::one(change, others, [&name], |row| row.get(0))?;
            if others >= MOST {
                let message = format!("there are {MOST} presets");
                let error = Error::new(Code::Conflict, message);
                return Err(error.hint("delete one first").into());
            }
            let put = "INSERT OR REPLACE INTO presets (name, settings) VALUES (?1, ?2)";
            sql::run(change, put, params![name, Json(&settings)])?;
            Ok(Preset {
                name,
                built_in: false,
                settings,
            })
        })
        .await
    }

    /// Deletes a preset.
    ///
    /// # Errors
    /// [`Code::NotFound`]; [`Code::Conflict`] for one that comes with Tierbar.
    pub async fn delete_preset(&self, name: &str) -> Result<(), Error> {
        let name = own_name(name)?.to_owned();
        self.write(move |change| {
            match sql::run(change, "DELETE FROM presets WHERE name = ?1", [&name])? {
                0 => {
                    Err(Error::new(Code::NotFound, format!("there is no preset \"{name}\"")).into())
                }
                _ => Ok(()),
            }
        })
        .await
    }
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
