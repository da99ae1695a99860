//! Chooses the name of a downloaded file in the models folder, which is always a plain name.

use super::{
    HubFile,
    quants::{file_name, quant_in, stem},
};
use crate::reference::{Repository, is_unprintable};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use tierbar_fetch::display_url;

/// File systems allow 255; what is written beside a file while it is fetched has a longer name.
const MAX_BYTES: usize = 200;
/// Generic names that do not identify a model.
const GENERIC: [&str; 8] = [
    "model",
    "ggml",
    "gguf",
    "weights",
    "main",
    "mmproj",
    "consolidated",
    "unsloth",
];

/// Returns the names of a model's files in order. `taken` returns whether another model has that name, ignoring case.
///
/// A name that does not say which model it is, or that another model has, begins with the repository's name; if that
/// is taken too, with the owner's, and at last with part of the content's hash.
pub(super) fn names(
    repository: &Repository,
    commit: &str,
    files: &[HubFile],
    taken: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let name = repository.name();
    let short = ["-gguf", "-GGUF"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name);
    let first = &files[0];
    let hash = first.sha256.as_deref().unwrap_or(commit);
    let prefixes = [
        String::new(),
        format!("{short}-"),
        format!("{}-{short}-", repository.owner()),
        format!("{}-{}-", hash.get(..8).unwrap_or(hash), short),
    ];
    let skip = usize::from(is_generic(&first.path, short));
    let of = |prefix: &String| -> Vec<String> {
        files
            .iter()
            .map(|file| plain_name(&file.path, prefix))
            .collect()
    };
    let last = prefixes.len() - 1;
    prefixes[skip..last]
        .iter()
        .map(of)
        .find(|names| !names.iter().any(|name| taken(name)))
        .unwrap_or_else(|| of(&prefixes[last]))
}

/// Returns the name of a file that is not from the hub.
pub(super) fn name_of_url(url: &url::Url, taken: &dyn Fn(&str) -> bool) -> String {
    let last = url
        .path_segments()
        .and_then(|mut parts| parts.next_back())
        .unwrap_or_default();
    let decoded = percent_encoding::percent_decode_str(last).decode_utf8_lossy();
    let name = plain_name(&decoded, "");
    if !taken(&name) {
        return name;
    }
    // Without the query, whose signature may change each time.
    plain_name(&decoded, &format!("{}-", short_hash(&display_url(url))))
}

fn is_generic(path: &str, repository: &str) -> bool {
    let stem = stem(path).to_ascii_lowercase();
    if repository.to_ascii_lowercase().starts_with(&stem) {
        return false;
    }
    let first = stem.split(['-', '_', '.']).next().unwrap_or_default();
    GENERIC.contains(&first) || quant_in(first).is_some() || first == "ud"
}

/// Returns a safe file name: no separators, not hidden, no characters that confuse a shell or the Finder, of bounded
/// length. A projector's stays recognizable as one. The numbers of a part stay at the end, where llama.cpp looks.
fn plain_name(path: &str, prefix: &str) -> String {
    let full = file_name(path);
    let stem = stem(path);
    let numbers = tierbar_gguf::split_of(full).map_or_else(String::new, |split| {
        format!("-{:05}-of-{:05}", split.number, split.count)
    });
    let named = match stem.strip_prefix("mmproj-") {
        Some(rest) if !prefix.is_empty() => format!("mmproj-{prefix}{rest}"),
        _ => format!("{prefix}{stem}"),
    };
    let clean: String = named
        .chars()
        .map(|c| {
            if is_unprintable(c) || "/\\:*?\"<>|".contains(c) {
                '_'
            } else {
                c
            }
        })
        .collect();
    let clean = clean
        .trim_start_matches(['.', '-', ' '])
        .trim_end_matches(['.', ' ']);
    let clean = if clean.is_empty() { "model" } else { clean };
    let room = MAX_BYTES - numbers.len() - ".gguf".len();
    if clean.len() <= room {
        return format!("{clean}{numbers}.gguf");
    }
    // Two long names that differ at their ends stay two.
    let hash = short_hash(clean);
    let cut = clean.floor_char_boundary(room - hash.len() - 1);
    format!("{}-{hash}{numbers}.gguf", &clean[..cut])
}

fn short_hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text)[..4])
}
