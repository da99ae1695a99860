//! References that are written as addresses: pages of the hub, and files on any server.

use super::{
    HUB, HUB_HOSTS, Pick, Reference, Repository, file_path, is_gguf, malformed, of_repository,
    revision_of,
};
use tierbar_core::{Code, Error};
use tierbar_fetch::is_near;
use url::Url;

pub(super) fn hub_url(repository: &Repository, kind: &str, revision: &str, path: &str) -> Url {
    let mut url = Url::parse(HUB).expect("a constant");
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.extend([repository.owner(), repository.name(), kind, revision]);
        if !path.is_empty() {
            segments.extend(path.split('/'));
        }
    }
    url
}

pub(super) fn of_url(text: &str) -> Result<Reference, Error> {
    let mut url =
        Url::parse(text).map_err(|error| malformed(text, &format!("it is not a URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        // Not repeated: the password would be in a log.
        return Err(Error::new(
            Code::BadRequest,
            "it contains a name or a password, which could end up in logs",
        ));
    }
    let plain_ok = url.scheme() == "http" && is_near(&url);
    if url.scheme() != "https" && !plain_ok {
        return Err(malformed(
            text,
            "it does not start with https:// (http:// works only on this machine and network)",
        ));
    }
    url.set_fragment(None);
    if url.host_str().is_some_and(|host| HUB_HOSTS.contains(&host)) && url.port().is_none() {
        return of_hub_page(&url, text);
    }
    let name = decoded_parts(&url, text)?.pop().unwrap_or_default();
    if !is_gguf(&name) {
        return Err(malformed(text, "its path does not end in a .gguf file")
            .hint("open the page in a browser and copy the link to the file itself"));
    }
    Ok(Reference::Url(url))
}

/// A page of the hub: a repository's, one of its tree, or a file's.
fn of_hub_page(url: &Url, whole: &str) -> Result<Reference, Error> {
    let parts = decoded_parts(url, whole)?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let main = |revision: &str| (revision != "main").then(|| revision.to_owned());
    match parts[..] {
        [owner, name] => of_repository(&format!("{owner}/{name}"), whole),
        [owner, name, "tree", revision] => Ok(Reference::Hub {
            repository: Repository::from_parts(owner, name, whole)?,
            revision: main(revision_of(revision, whole)?),
            pick: Pick::Suiting,
        }),
        [
            owner,
            name,
            "resolve" | "blob" | "raw",
            revision,
            ref file @ ..,
        ] if !file.is_empty() => Ok(Reference::Hub {
            repository: Repository::from_parts(owner, name, whole)?,
            revision: main(revision_of(revision, whole)?),
            pick: Pick::File(file_path(&file.join("/"), whole)?),
        }),
        _ => Err(malformed(
            whole,
            "this page is neither a repository nor a file of one",
        )),
    }
}

/// The path's parts, percent-decoded. A decoded slash, NUL or `..` is refused, not passed on.
fn decoded_parts(url: &Url, whole: &str) -> Result<Vec<String>, Error> {
    let parts = url.path_segments().into_iter().flatten();
    let mut decoded = Vec::new();
    for part in parts.filter(|part| !part.is_empty()) {
        let text = percent_encoding::percent_decode_str(part)
            .decode_utf8()
            .map_err(|_| malformed(whole, "its path is not valid UTF-8"))?;
        if text.contains('/') {
            return Err(malformed(whole, "a name in its path contains a slash"));
        }
        decoded.push(text.into_owned());
    }
    Ok(decoded)
}
