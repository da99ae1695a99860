//! Reads and validates the file tree of a repository.

use crate::reference::{is_gguf, path_problem};
use serde::Deserialize;
use serde_json::Number;

/// 4 TiB, more than any model of today; sums of such sizes do not overflow.
const MAX_SIZE: u64 = 1 << 42;

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubFile {
    /// In the repository. Checked: relative, without `..`, empty parts or control characters.
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// Lower-case hex; `None` for a small file that is not kept as a large one.
    pub sha256: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Entry {
    r#type: String,
    path: String,
    size: Option<Number>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    oid: Option<String>,
    size: Option<Number>,
}

/// Returns the GGUF files of a page. Invalid entries are left out and logged.
pub(super) fn models(page: Vec<Entry>) -> Vec<HubFile> {
    let is_model = |entry: &Entry| entry.r#type == "file" && is_gguf(&entry.path);
    let (mut files, mut left_out) = (Vec::new(), Vec::new());
    for entry in page.into_iter().filter(is_model) {
        match checked(&entry) {
            Ok(file) => files.push(file),
            Err(why) => left_out.push((entry.path, why)),
        }
    }
    if let Some((path, why)) = left_out.first() {
        let path: String = path.chars().take(100).collect();
        let count = left_out.len();
        tracing::warn!("ignored {count} files of a repository; the first, {path:?}, {why}");
    }
    files
}

fn checked(entry: &Entry) -> Result<HubFile, &'static str> {
    if let Some(problem) = path_problem(&entry.path) {
        return Err(problem);
    }
    let lfs = entry.lfs.as_ref();
    // With `lfs`, `size` may be that of the pointer file.
    let size = lfs.and_then(|lfs| lfs.size.as_ref());
    let size = size.or(entry.size.as_ref()).and_then(Number::as_u64);
    let size = size.filter(|size| (1..=MAX_SIZE).contains(size));
    let hash = |lfs: &Lfs| {
        lfs.oid
            .as_deref()
            .and_then(sha256_of)
            .ok_or("has an invalid hash")
    };
    Ok(HubFile {
        path: entry.path.clone(),
        size: size.ok_or("has an invalid size")?,
        sha256: lfs.map(hash).transpose()?,
    })
}

/// Returns the sha256 of an LFS object's ID, which some servers prefix with the algorithm.
fn sha256_of(oid: &str) -> Option<String> {
    let hex = oid.strip_prefix("sha256:").unwrap_or(oid);
    let is_hash = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| hex.to_ascii_lowercase())
}
