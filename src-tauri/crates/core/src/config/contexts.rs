use serde::{Deserialize, Serialize};

/// How contexts are saved, and where they are uploaded to, encrypted with the secret `context-passphrase`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct ContextsConfig {
    /// The form of newly saved contexts, unless the request names one.
    pub form: ContextForm,
    /// A folder, such as `~/Dropbox/Tierbar`, or a bucket, such as `s3://bucket/folder`; empty for none.
    pub store: String,
    /// The server of a bucket, such as `https://s3.example.com`; empty for Amazon's.
    pub endpoint: String,
    /// The region of a bucket, such as `eu-central-1` or `auto`; empty for `us-east-1`.
    pub region: String,
    /// The ID of the access key for a bucket. Its secret is the secret `context-store`.
    pub access_key: String,
}

/// The form of a saved context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContextForm {
    /// As it was in memory.
    #[default]
    Exact,
    /// Halves in 4 bits: about a third of the size. Answers may differ slightly.
    Compact,
}

/// Where the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextStore<'a> {
    Folder(&'a str),
    Bucket { bucket: &'a str, prefix: &'a str },
}

impl ContextsConfig {
    /// Returns where the store is; `None` if there is none.
    ///
    /// # Errors
    /// Why `store` is neither a folder nor a bucket.
    pub fn place(&self) -> Result<Option<ContextStore<'_>>, String> {
        let store = self.store.trim();
        if store.is_empty() {
            return Ok(None);
        }
        let Some(place) = store.strip_prefix("s3://") else {
            if store.contains("://") {
                return Err(format!(
                    "\"{store}\" is neither a folder nor a bucket; use a full path, or s3://BUCKET/FOLDER with `endpoint`"
                ));
            }
            return Ok(Some(ContextStore::Folder(store)));
        };
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if bucket.is_empty() || bucket.starts_with('.') || !bucket.bytes().all(plain) {
            return Err(format!(
                "\"{bucket}\" is not the name of a bucket; use s3://BUCKET or s3://BUCKET/FOLDER"
            ));
        }
        if prefix.split('/').any(|part| matches!(part, "." | ".."))
            || prefix.contains(char::is_control)
        {
            return Err(format!("\"{prefix}\" is not a folder in a bucket"));
        }
        Ok(Some(ContextStore::Bucket {
            bucket,
            prefix: prefix.trim_matches('/'),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_folder_or_a_bucket() {
        let place = |store: &str| {
            let config = ContextsConfig {
                store: store.to_owned(),
                ..ContextsConfig::default()
            };
            config
                .place()
                .map(|place| place.map(|place| format!("{place:?}")))
        };
        assert_eq!(place(" "), Ok(None));
        for (store, expected) in [
            ("~/Dropbox", "Folder(\"~/Dropbox\")"),
            ("s3://b", "Bucket { bucket: \"b\", prefix: \"\" }"),
            (
                "s3://my.b-1/a/b/",
                "Bucket { bucket: \"my.b-1\", prefix: \"a/b\" }",
            ),
        ] {
            assert_eq!(place(store), Ok(Some(expected.to_owned())));
        }
        for store in [
            "s3://",
            "s3:///a",
            "s3://a b",
            "s3://..",
            "s3://b/../c",
            "https://b.example.com",
        ] {
            place(store).unwrap_err();
        }
    }
}
