//! The hub's API: what a repository holds, how large it is, what it hashes to; and search.
//!
//! Shapes: `huggingface_hub`'s `hf_api.py` (model info, tree, search) and the answers of <https://huggingface.co/api>.
//! Nothing in an answer is trusted: names are checked before they become paths, sizes before they are summed.

mod endpoint;
mod lenient;
mod local;
mod offers;
mod projectors;
mod quants;
mod readme;
mod resolve;
mod tree;

pub use endpoint::{endpoint, tokens};
pub use projectors::ResolvedProjector;
pub use quants::Quant;
pub use resolve::{PinnedQuant, QuantTarget, ResolvedFile, ResolvedReference};
pub use tree::HubFile;

use crate::reference::Repository;
use lenient::LenientList;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use tierbar_core::{Code, Error, catalog::HubModel};
use tierbar_fetch::{Answer, Get, TokenFor, Url, Web};

/// Model info carries the card's metadata and the names of all files.
const MAX_INFO_BYTES: usize = 8 << 20;
/// A page has up to 1000 entries of some hundred bytes.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// Of a tree.
const MAX_PAGES: usize = 20;
/// Of a repository, whose names are kept; the largest collections of quants have some hundred.
const MOST_MODELS: usize = 2000;
const FOUND: &str = "30";
const MAX_QUERY: usize = 200;

/// A hub: its address, and a client that may know its token. Cheap to clone.
#[derive(Clone)]
pub struct Hub {
    web: Web,
    tokens: TokenFor,
    endpoint: Url,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("endpoint", &self.endpoint.as_str())
            .finish_non_exhaustive()
    }
}

/// A repository's models, at one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubFiles {
    pub repository: Repository,
    /// The full commit hash.
    pub commit: String,
    pub licence: Option<String>,
    /// A license has to be accepted on the repository's page before files can be fetched.
    pub gated: bool,
    /// Whole quants, the smallest first.
    pub quants: Vec<Quant>,
    /// The media projectors for its models, sorted by size.
    pub projectors: Vec<HubFile>,
}

#[derive(Deserialize)]
struct Info {
    sha: Option<String>,
    /// `false`, `"auto"` or `"manual"`.
    gated: Option<Box<RawValue>>,
    #[serde(rename = "cardData")]
    card: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct SearchHit {
    id: String,
    #[serde(default)]
    downloads: u64,
    #[serde(default)]
    likes: u64,
    #[serde(rename = "lastModified")]
    updated: Option<String>,
    gated: Option<Box<RawValue>>,
}

impl HubFiles {
    pub(crate) fn new(repository: Repository, commit: String, files: Vec<HubFile>) -> Self {
        let (quants, projectors) = quants::group(&repository, files);
        Self {
            repository,
            commit,
            licence: None,
            gated: false,
            quants,
            projectors,
        }
    }
}

impl Hub {
    /// `endpoint`: as [`endpoint()`] gives it.
    pub fn new(web: Web, tokens: TokenFor, endpoint: Url) -> Self {
        Self {
            web,
            tokens,
            endpoint,
        }
    }

    /// Returns the contents of a repository at a branch, tag or commit, or on its main branch.
    ///
    /// # Errors
    /// [`Code::RepositoryUnknown`], [`Code::AccessDenied`], [`Code::Unreachable`]; [`Code::Corrupt`] for an answer
    /// that makes no sense.
    pub async fn repository(
        &self,
        repository: &Repository,
        revision: Option<&str>,
    ) -> Result<HubFiles, Error> {
        let mut path = vec!["api", "models", repository.owner(), repository.name()];
        if let Some(revision) = revision {
            path.extend(["revision", revision]);
        }
        let explain = |error| self.explain(error, repository, revision);
        let info: Info = self
            .json(self.url(&path), MAX_INFO_BYTES)
            .await
            .map_err(explain)?
            .0;
        let commit = info
            .sha
            .filter(|sha| sha.len() == 40 && sha.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .ok_or_else(|| invalid_answer(repository, "has no commit"))?;
        let files = self.tree(repository, &commit).await?;
        Ok(HubFiles {
            licence: info.card.as_deref().and_then(license_of_card),
            gated: is_gated(info.gated.as_deref()),
            ..HubFiles::new(repository.clone(), commit, files)
        })
    }

    /// Returns repositories with GGUF files, the most downloaded first.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for a query that is too long, [`Code::AccessDenied`] for a token that is refused,
    /// [`Code::Unreachable`].
    pub async fn search(&self, query: &str) -> Result<Vec<HubModel>, Error> {
        let query = query.trim();
        if query.len() > MAX_QUERY || query.chars().any(char::is_control) {
            return Err(Error::new(
                Code::BadRequest,
                format!("a search has at most {MAX_QUERY} characters and no control characters"),
            ));
        }
        let mut url = self.url(&["api", "models"]);
        url.query_pairs_mut()
            .extend_pairs([
                ("search", query),
                ("filter", "gguf"),
                ("limit", FOUND),
                ("sort", "downloads"),
                ("direction", "-1"),
            ])
            .extend_pairs(
                ["downloads", "likes", "lastModified", "gated"].map(|field| ("expand[]", field)),
            );
        let answer = self.json(url, MAX_PAGE_BYTES).await;
        let (LenientList::<SearchHit>(found), _) = answer.map_err(|error| self.refused(error))?;
        Ok(found
            .into_iter()
            .filter(|found| Repository::new(&found.id).is_ok())
            .map(|found| HubModel {
                repository: found.id,
                downloads: found.downloads,
                likes: found.likes,
                updated: found.updated.filter(|time| time.len() < 64),
                gated: is_gated(found.gated.as_deref()),
            })
            .collect())
    }

    /// Returns the URL of a file. A commit pins its contents.
    pub fn file_url(&self, repository: &Repository, commit: &str, path: &str) -> Url {
        let mut parts = vec![repository.owner(), repository.name(), "resolve", commit];
        parts.extend(path.split('/'));
        self.url(&parts)
    }

    /// Returns whether requests to the hub carry a token.
    pub fn has_token(&self) -> bool {
        (self.tokens)(&self.endpoint).is_some()
    }

    /// For a gated repository without a token, or with one whose owner has not accepted the license.
    pub(crate) fn denied(&self, repository: &Repository) -> Error {
        let page = self.page(repository);
        Error::new(
            Code::AccessDenied,
            format!("{repository} requires that you accept its license"),
        )
        .hint(format!(
            "accept it on {page}, make an access token there, and set it: HF_TOKEN, or the secret hugging-face in the \
             settings"
        ))
    }

    /// Returns the GGUF files of a commit, sorted by path.
    async fn tree(&self, repository: &Repository, commit: &str) -> Result<Vec<HubFile>, Error> {
        let path = [
            "api",
            "models",
            repository.owner(),
            repository.name(),
            "tree",
            commit,
        ];
        let mut url = self.url(&path);
        url.set_query(Some("recursive=true"));
        let (mut files, mut count) = (Vec::new(), 0);
        for _ in 0..MAX_PAGES {
            let (LenientList(page), link) = self
                .json(url.clone(), MAX_PAGE_BYTES)
                .await
                .map_err(|error| self.explain(error, repository, Some(commit)))?;
            count += page.len();
            files.extend(tree::models(page));
            if files.len() > MOST_MODELS {
                break;
            }
            let Some(next) = link.as_deref().and_then(next_page) else {
                // Of several files at one path the first counts.
                files.sort_by(|a, b| a.path.cmp(&b.path));
                files.dedup_by(|a, b| a.path == b.path);
                return Ok(files);
            };
            // Only the query: a mirror may return links to the hub itself, and the token is for one server.
            url.set_query(url.join(next).ok().as_ref().and_then(Url::query));
        }
        Err(invalid_answer(
            repository,
            &format!("lists more than {count} files"),
        ))
    }

    async fn json<T: DeserializeOwned>(
        &self,
        url: Url,
        limit: usize,
    ) -> Result<(T, Option<String>), Error> {
        let mut get = Get::new(url);
        get.token = (self.tokens)(&get.url);
        let answer: Answer = self.web.get(get).await?;
        let (link, url) = (answer.link.clone(), answer.url.clone());
        let bytes = answer.bytes(limit).await?;
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            let host = url.host_str().unwrap_or_default();
            Error::new(
                Code::Corrupt,
                format!(
                    "{host} sent an unexpected answer for {}: {error}",
                    url.path()
                ),
            )
            .hint("check HF_ENDPOINT, and whether the network requires a login")
        })?;
        Ok((value, link))
    }

    fn url(&self, parts: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(parts);
        }
        url
    }

    /// Explains a refused request for a repository. The hub answers 401 for one that does not exist, to hide which private
    /// ones do.
    fn explain(&self, error: Error, repository: &Repository, revision: Option<&str>) -> Error {
        let status = error.details.get("status").and_then(Value::as_u64);
        let restated = match status {
            Some(401) if self.has_token() => return self.refused(error),
            Some(403) => self.denied(repository),
            Some(401 | 404 | 410) => {
                let revision = revision.filter(|_| status != Some(401));
                let with = revision.map(|revision| format!(" with revision {revision}"));
                let what = format!("{repository}{}", with.unwrap_or_default());
                Error::new(Code::RepositoryUnknown, format!("the hub has no repository {what}")).hint(
                    "check the spelling; a private repository needs an access token (HF_TOKEN, or the secret \
                     hugging-face in Settings)",
                )
            }
            _ => return self.refused(error),
        };
        Error {
            details: error.details,
            ..restated
        }
    }

    fn refused(&self, error: Error) -> Error {
        let detail = |name| error.details.get(name).and_then(Value::as_u64);
        let restated = match detail("status") {
            Some(401) if self.has_token() => Error::new(
                Code::AccessDenied,
                "the hub rejected the access token (401)",
            )
            .hint("it may have expired; create a new one in your Hugging Face settings"),
            Some(429) => {
                let wait = detail("retry_after_seconds");
                let wait = wait.map_or("later".to_owned(), |seconds| format!("in {seconds} s"));
                Error::new(
                    Code::Unreachable,
                    "the hub received too many requests (429)",
                )
                .hint(format!(
                    "try again {wait}; with an access token, the hub allows more requests"
                ))
            }
            _ => return error,
        };
        Error {
            details: error.details,
            ..restated
        }
    }
}

fn invalid_answer(repository: &Repository, what: &str) -> Error {
    Error::new(
        Code::Corrupt,
        format!("the hub's answer for {repository} {what}"),
    )
}

/// Returns the address of the next page in a `Link` header: `<address>; rel="next"`, possibly among others.
fn next_page(link: &str) -> Option<&str> {
    let mut rest = link;
    while let Some((_, after)) = rest.split_once('<') {
        let (address, after) = after.split_once('>')?;
        let parameters = after.split('<').next().unwrap_or(after);
        let is_next = parameters.split([';', ',']).any(|parameter| {
            let relation = parameter.trim().strip_prefix("rel=").unwrap_or_default();
            relation
                .trim_matches('"')
                .split(' ')
                .any(|word| word.eq_ignore_ascii_case("next"))
        });
        if is_next {
            return Some(address);
        }
        rest = after;
    }
    None
}

fn is_gated(gated: Option<&RawValue>) -> bool {
    gated.is_some_and(|gated| gated.get() != "false")
}

/// Returns the `license` of the card, or the first of a list.
fn license_of_card(card: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Card {
        license: Box<RawValue>,
    }
    let card: Card = serde_json::from_str(card.get()).ok()?;
    let text = card.license.get();
    let alone: Option<String> = serde_json::from_str(text).ok();
    let first = || {
        let LenientList::<String>(listed) = serde_json::from_str(text).ok()?;
        listed.into_iter().next()
    };
    alone
        .or_else(first)
        .filter(|license| license.len() <= 100 && !license.chars().any(char::is_control))
}

#[cfg(test)]
mod tests;
