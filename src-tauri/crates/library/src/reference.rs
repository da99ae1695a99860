//! What a user may ask for: `owner/repo[:quant]`, a file of a repository, a URL, a catalog id, an Ollama-style name. Whether it
//! exists is another question: the hub's, or the catalog's.

mod address;

use address::{hub_url, of_url};
use std::fmt;
use tierbar_core::{Code, Error};
use tierbar_fetch::{Url, display_url};

/// The public hub. `HF_ENDPOINT` may set a mirror.
pub const HUB: &str = "https://huggingface.co";
/// The host names of the hub's pages, independent of the endpoint.
const HUB_HOSTS: [&str; 4] = ["huggingface.co", "www.huggingface.co", "hf.co", "www.hf.co"];

/// Signed URLs have some hundred bytes of query; longer ones than this are refused by servers.
const MAX_BYTES: usize = 4096;
/// The hub's own limit for each half of a repository's name.
const MAX_NAME: usize = 96;
/// File systems' limit for one name.
const MAX_PART: usize = 255;

/// Something to fetch. Its text form reads back as the same reference.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reference {
    Hub {
        repository: Repository,
        /// A branch, a tag or a commit; the main branch if `None`.
        revision: Option<String>,
        pick: Pick,
    },
    /// A GGUF file on any server.
    Url(Url),
    /// A model of the catalog.
    Catalog { id: String, quant: Option<String> },
}

/// A choice among the files of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pick {
    /// The quant recommended for the machine.
    Suiting,
    /// The quant in the file names, ignoring case.
    Quant(String),
    /// The file at this path; of a split model any part.
    File(String),
}

/// A repository's name, `owner/repo`: two names that can stand in a path and a URL as they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Repository {
    owner: String,
    name: String,
}

impl Repository {
    /// # Errors
    /// [`Code::BadRequest`] for what the hub would not accept as a name.
    pub fn new(text: &str) -> Result<Self, Error> {
        let parts: Vec<_> = text.split('/').collect();
        match parts[..] {
            [owner, name] => Self::from_parts(owner, name, text),
            _ => Err(malformed(text, "a repository is written owner/repo")),
        }
    }

    fn from_parts(owner: &str, name: &str, whole: &str) -> Result<Self, Error> {
        for (part, what) in [(owner, "owner"), (name, "repository")] {
            if let Some(problem) = name_problem(part) {
                return Err(malformed(whole, &format!("its {what} {problem}")));
            }
        }
        Ok(Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
        })
    }

    pub fn owner(&self) -> &str {
        &self.owner
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl Reference {
    /// Reads what a user wrote. `catalog` returns the id for one or an alias, such as `gemma-4-e4b` or `gemma4:e4b`.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for what is malformed, [`Code::ModelUnknown`] for a bare name that is not in the catalog.
    pub fn parse(text: &str, catalog: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::new(Code::BadRequest, "the model name is empty").hint(FORMS));
        }
        if text.len() > MAX_BYTES {
            let message = format!("the model name is too long ({} bytes)", text.len());
            return Err(Error::new(Code::BadRequest, message).hint(FORMS));
        }
        if text.chars().any(is_unprintable) {
            return Err(malformed(text, "it contains control characters"));
        }
        if text.contains("://") {
            return of_url(text);
        }
        if let Some(known) = of_catalog(text, catalog)? {
            return Ok(known);
        }
        if text.starts_with(['/', '~', '.']) || text.contains('\\') {
            return Err(malformed(text, "it looks like a path on this computer")
                .hint("to use the models of a folder in place, run `tierbar models import`"));
        }
        if !text.contains('/') {
            let message = format!("the catalog has no model {}", quoted(text));
            return Err(Error::new(Code::ModelUnknown, message).hint(FORMS));
        }
        // As Ollama's users write it.
        let on_hub = HUB_HOSTS.iter().find_map(|host| {
            let (head, rest) = text.split_at_checked(host.len())?;
            head.eq_ignore_ascii_case(host)
                .then(|| rest.strip_prefix('/'))?
        });
        match on_hub {
            Some(path) if path.split('/').count() > 2 => of_url(&format!("{HUB}/{path}")),
            Some(path) => of_repository(path, text),
            None => of_repository(text, text),
        }
    }
}

impl fmt::Display for Reference {
    /// What the API calls `reference`: a URL stands without its query, which may hold a signature.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hub {
                repository,
                revision,
                pick,
            } => match (pick, revision) {
                // No parser makes one with a revision, which has no page on the hub.
                (Pick::Quant(quant), _) => write!(f, "{repository}:{quant}"),
                (Pick::Suiting, None) => write!(f, "{repository}"),
                (Pick::File(path), None) => write!(f, "{repository}/{path}"),
                (Pick::Suiting, Some(revision)) => {
                    write!(f, "{}", hub_url(repository, "tree", revision, ""))
                }
                (Pick::File(path), Some(revision)) => {
                    write!(f, "{}", hub_url(repository, "resolve", revision, path))
                }
            },
            Self::Url(url) => f.write_str(&display_url(url)),
            Self::Catalog { id, quant: None } => f.write_str(id),
            Self::Catalog {
                id,
                quant: Some(quant),
            } => write!(f, "{id}:{quant}"),
        }
    }
}

const FORMS: &str = "name it owner/repo, owner/repo:quant, owner/repo/file.gguf, an https:// address of a .gguf file, \
                     or a model of the catalog such as gemma-4-e4b";

fn of_catalog(
    text: &str,
    catalog: impl Fn(&str) -> Option<String>,
) -> Result<Option<Reference>, Error> {
    // The whole first: in `gemma4:e4b` the colon is part of the name.
    if let Some(id) = catalog(text) {
        return Ok(Some(Reference::Catalog { id, quant: None }));
    }
    let split = text.rsplit_once(':');
    let named = split.filter(|(head, _)| !head.contains('/'));
    let Some((id, quant)) = named.and_then(|(head, quant)| Some((catalog(head)?, quant))) else {
        return Ok(None);
    };
    let quant = quant_of(quant, text)?;
    Ok(Some(Reference::Catalog { id, quant }))
}

/// `owner/repo`, `owner/repo:quant` or `owner/repo/path/file.gguf`.
fn of_repository(path: &str, whole: &str) -> Result<Reference, Error> {
    let mut parts = path.splitn(3, '/');
    let (owner, name, file) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let name = name.ok_or_else(|| malformed(whole, "a repository is written owner/repo"))?;
    let (repository, pick) = if let Some(file) = file {
        (
            Repository::from_parts(owner, name, whole)?,
            Pick::File(file_path(file, whole)?),
        )
    } else {
        let (name, quant) = match name.split_once(':') {
            Some((name, quant)) => (name, quant_of(quant, whole)?),
            None => (name, None),
        };
        let pick = quant.map_or(Pick::Suiting, Pick::Quant);
        (Repository::from_parts(owner, name, whole)?, pick)
    };
    Ok(Reference::Hub {
        repository,
        revision: None,
        pick,
    })
}

fn file_path(path: &str, whole: &str) -> Result<String, Error> {
    if let Some(problem) = path_problem(path) {
        return Err(malformed(whole, &format!("its file path {problem}")));
    }
    if !is_gguf(path) {
        return Err(malformed(whole, "its file is not a .gguf file"));
    }
    Ok(path.to_owned())
}

/// `None` for `latest`, which is Ollama's word for no particular one.
fn quant_of(quant: &str, whole: &str) -> Result<Option<String>, Error> {
    if quant.is_empty() || quant.len() > 64 || !quant.chars().all(is_plain) {
        return Err(malformed(
            whole,
            "the text after the colon is not a quant such as Q4_K_M",
        ));
    }
    Ok((!quant.eq_ignore_ascii_case("latest")).then(|| quant.to_owned()))
}

/// Git allows more, but no revision that is fetched in practice needs it.
fn revision_of<'a>(revision: &'a str, whole: &str) -> Result<&'a str, Error> {
    if revision.len() > MAX_PART
        || !revision.chars().all(is_plain)
        || revision.chars().all(|c| c == '.')
    {
        return Err(malformed(
            whole,
            "its revision is neither a commit nor a plain branch name",
        ));
    }
    Ok(revision)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

/// Returns the problem with an owner's or a repository's name. The rules of `huggingface_hub`'s `validate_repo_id`.
fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty")
    } else if name.len() > MAX_NAME {
        Some("has more than 96 characters")
    } else if !name.chars().all(is_plain) {
        Some("has characters other than letters, digits, '-', '_' and '.'")
    } else if name.starts_with(['.', '-']) || name.ends_with(['.', '-']) {
        Some("begins or ends with '.' or '-'")
    } else if name.contains("..") || name.contains("--") {
        Some("contains '..' or '--'")
    } else {
        None
    }
}

/// Returns the problem with a file's path in a repository, or `None` if it can be used in a URL once encoded.
pub(crate) fn path_problem(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.len() > MAX_BYTES {
        return Some("is too long");
    }
    path.split('/').find_map(|part| match part {
        "" => Some("has an empty part"),
        "." | ".." => Some("leads out of the repository"),
        part if part.len() > MAX_PART => Some("has a name of more than 255 bytes"),
        part if part.contains('\\') => Some("has a backslash"),
        part if part.chars().any(is_unprintable) => Some("has control characters"),
        _ => None,
    })
}

/// Control characters, those that end a line, and those that turn the direction of the text around them.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(crate) fn is_gguf(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    crate::name::without_extension(name).is_some()
}

fn malformed(text: &str, why: &str) -> Error {
    Error::new(
        Code::BadRequest,
        format!("{} cannot be downloaded: {why}", quoted(text)),
    )
    .hint(FORMS)
}

/// Returns the text for a message: on one line, shortened, without a URL's query.
fn quoted(text: &str) -> String {
    let text = text.split('?').next().unwrap_or(text);
    let mut shown: String = text
        .chars()
        .take(100)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(100).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

#[cfg(test)]
mod tests;
