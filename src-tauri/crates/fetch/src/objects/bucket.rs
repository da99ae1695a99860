//! A bucket of Amazon S3, or of any server that speaks as it does: Cloudflare R2, Backblaze B2, MinIO, Garage and others.
//!
//! Of S3's API it uses `GetObject`, `PutObject`, `HeadObject`, `DeleteObject` and `ListObjectsV2`, with the bucket in the path, which every
//! such server understands. Source: the Amazon S3 API Reference.

use super::{
    MOST_LISTED, Object, gone, is_plain,
    signature::{Request, Signer, encode_path, encode_query, hash},
    too_long, wrong_length,
};
use crate::{
    loopback::{built, strict},
    remote::is_near,
    web::{display_url, host_of, root_cause},
};
use data_encoding::HEXLOWER;
use http::{Method, StatusCode, header};
use jiff::Timestamp;
use quick_xml::{Reader, events::Event};
use reqwest::{Body, Response};
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use std::{fmt, io::Read, path::Path, sync::Arc, time::Duration};
use tierbar_core::{Code, Error, units::file_size};
use tokio::{fs::File, io::AsyncWriteExt, task::spawn_blocking, time::timeout};
use url::Url;

const CONNECT: Duration = Duration::from_secs(15);
/// The longest silence of a server.
const SILENCE: Duration = Duration::from_secs(60);
/// Slower than this, in bytes per second, an upload is given up.
const LEAST_RATE: u64 = 32 << 10;
/// `PutObject` takes no more.
const MOST_BYTES: u64 = 5 << 30;
/// A page of a list has a thousand objects of some hundreds of bytes; the text of an error is far shorter.
const LONGEST_ANSWER: usize = 4 << 20;

/// A bucket, and the key that may read and write it.
#[derive(Debug, Clone)]
pub struct BucketOptions {
    /// The server; Amazon's own if it is empty.
    pub endpoint: String,
    /// Such as `eu-central-1`; many other servers take `auto` or anything. `us-east-1` if it is empty.
    pub region: String,
    pub bucket: String,
    /// What the names of all objects begin with, such as `tierbar`; a slash is added.
    pub prefix: String,
    pub access_key: String,
    pub secret: SecretString,
}

#[derive(Clone)]
pub(super) struct Bucket(Arc<Inner>);

struct Inner {
    client: reqwest::Client,
    server: Url,
    /// `/bucket`.
    root: String,
    /// Empty, or with a slash at its end.
    prefix: String,
    region: String,
    access_key: String,
    secret: SecretString,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("server", &self.0.server.as_str())
            .field("root", &self.0.root)
            .finish_non_exhaustive()
    }
}

/// What is sent.
enum Sent<'a> {
    Nothing,
    Bytes(Vec<u8>),
    File {
        path: &'a Path,
        bytes: u64,
        sum: String,
    },
}

impl Bucket {
    pub(super) fn new(options: BucketOptions) -> Result<Self, Error> {
        let region = Some(options.region).filter(|region| !region.is_empty());
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        let server = if options.endpoint.is_empty() {
            format!("https://s3.{region}.amazonaws.com")
        } else {
            options.endpoint
        };
        let invalid =
            |why: &str| Error::new(Code::ConfigInvalid, format!("contexts.endpoint {why}"));
        let server = Url::parse(&server).map_err(|_| {
            invalid("is not a URL").hint("use an address such as https://s3.example.com")
        })?;
        if server.scheme() != "https" && !(server.scheme() == "http" && is_near(&server)) {
            return Err(invalid("is not an https address")
                .hint("http is accepted only for this machine and network"));
        }
        if !server.username().is_empty()
            || server.password().is_some()
            || server.path() != "/"
            || server.query().is_some()
        {
            return Err(invalid("is more than a server's address")
                .hint("put the bucket into `contexts.store`, and the key where secrets are kept"));
        }
        // A signature is for one address, and what is sent is for one server.
        let builder = strict(CONNECT);
        let client = built(if is_near(&server) {
            builder.no_proxy()
        } else {
            builder
        })?;
        let prefix = options.prefix.trim_matches('/');
        Ok(Self(Arc::new(Inner {
            client,
            server,
            root: format!("/{}", options.bucket),
            prefix: if prefix.is_empty() {
                String::new()
            } else {
                format!("{prefix}/")
            },
            region,
            access_key: options.access_key,
            secret: options.secret,
        })))
    }

    pub(super) async fn list(&self) -> Result<Vec<Object>, Error> {
        let (mut objects, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut query = vec![("list-type", "2"), ("prefix", &self.0.prefix)];
            if let Some(token) = &after {
                query.push(("continuation-token", token));
            }
            let request = self.send(Method::GET, None, &query, &[], Sent::Nothing);
            let answer = self.accepted(request.await?).await?;
            let text = self.body(answer, LONGEST_ANSWER).await?;
            let page = page(&text, &self.0.prefix).ok_or_else(|| {
                let message = format!("{} did not return a list of objects", self.place());
                Error::new(Code::Corrupt, message)
                    .hint("check that `contexts.endpoint` is the address of an S3 server")
            })?;
            objects.extend(page.objects);
            // The same token again would go round in circles.
            if objects.len() >= MOST_LISTED || page.next.is_none() || page.next == after {
                objects.truncate(MOST_LISTED);
                return Ok(objects);
            }
            after = page.next;
        }
    }

    pub(super) async fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let range = format!("bytes=0-{}", most.saturating_sub(1));
        let headers = [("range", &*range)];
        let request = self.send(Method::GET, Some(name), &[], &headers, Sent::Nothing);
        let answer = request.await?;
        // An empty object has no range.
        if answer.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            return Ok(Some(Vec::new()));
        }
        let Some(mut answer) = self.found(answer).await? else {
            return Ok(None);
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        // A server that ignores the range sends more, which is not waited for.
        while bytes.len() < most {
            let Some(chunk) = self.chunk(&mut answer).await? else {
                break;
            };
            bytes.extend_from_slice(&chunk);
        }
        bytes.truncate(most);
        Ok(Some(bytes))
    }

    pub(super) async fn write(&self, name: &str, bytes: Vec<u8>, new: bool) -> Result<(), Error> {
        let headers: &[_] = if new { &[("if-none-match", "*")] } else { &[] };
        let request = self.send(Method::PUT, Some(name), &[], headers, Sent::Bytes(bytes));
        let answer = request.await?;
        // There is one, or another machine was faster.
        if new && matches!(answer.status().as_u16(), 409 | 412) {
            return Ok(());
        }
        self.accepted(answer).await.map(drop)
    }

    pub(super) async fn upload(&self, name: &str, from: &Path) -> Result<(), Error> {
        let path = from.to_owned();
        let (sum, bytes) = spawn_blocking(move || sum(&path))
            .await
            .map_err(|ended| Error::new(Code::Internal, ended.to_string()))??;
        if bytes > MOST_BYTES {
            let (bytes, most) = (file_size(bytes), file_size(MOST_BYTES));
            let message = format!("the context has {bytes}; S3 takes at most {most} at once");
            return Err(Error::new(Code::PayloadTooLarge, message)
                .hint("save it with a quantized KV cache, or use a folder as the store"));
        }
        let file = Sent::File {
            path: from,
            bytes,
            sum,
        };
        let answer = self.send(Method::PUT, Some(name), &[], &[], file).await?;
        self.accepted(answer).await?;
        let head = self.send(Method::HEAD, Some(name), &[], &[], Sent::Nothing);
        let head = self.accepted(head.await?).await?;
        // Not what is left of the body: a HEAD has none.
        let length = head.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        match length {
            Some(found) if found != bytes => Err(wrong_length(&self.place(), found, bytes)),
            _ => Ok(()),
        }
    }

    pub(super) async fn download(&self, name: &str, to: &Path, bytes: u64) -> Result<(), Error> {
        let request = self.send(Method::GET, Some(name), &[], &[], Sent::Nothing);
        let mut answer = self
            .found(request.await?)
            .await?
            .ok_or_else(|| gone(&self.place()))?;
        if let Some(found) = answer.content_length().filter(|found| *found != bytes) {
            return Err(wrong_length(&self.place(), found, bytes));
        }
        let failed = |error: std::io::Error| {
            Error::new(
                Code::Storage,
                format!("cannot write {}: {error}", to.display()),
            )
        };
        let mut out = File::create(to).await.map_err(failed)?;
        let mut received = 0;
        while let Some(chunk) = self.chunk(&mut answer).await? {
            received += chunk.len() as u64;
            if received > bytes {
                return Err(too_long(&self.place(), bytes));
            }
            out.write_all(&chunk).await.map_err(failed)?;
        }
        if received < bytes {
            return Err(wrong_length(&self.place(), received, bytes));
        }
        out.flush().await.map_err(failed)
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        let request = self.send(Method::DELETE, Some(name), &[], &[], Sent::Nothing);
        self.found(request.await?).await.map(drop)
    }

    /// Signs and sends a request, and waits for the head of its answer.
    async fn send(
        &self,
        method: Method,
        name: Option<&str>,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        sent: Sent<'_>,
    ) -> Result<Response, Error> {
        let inner = &self.0;
        let path = match name {
            Some(name) => format!("{}/{}{name}", inner.root, inner.prefix),
            None => inner.root.clone(),
        };
        let (path, query) = (encode_path(&path), encode_query(query));
        let (sum, bytes) = match &sent {
            Sent::Nothing => (hash(b""), 0),
            Sent::Bytes(bytes) => (hash(bytes), bytes.len() as u64),
            Sent::File { bytes, sum, .. } => (sum.clone(), *bytes),
        };
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let host = host_of(&inner.server);
        let mut signed = vec![
            ("host", &*host),
            ("x-amz-content-sha256", &*sum),
            ("x-amz-date", &*time),
        ];
        signed.extend(headers);
        signed.sort_unstable();
        let signer = Signer {
            access_key: &inner.access_key,
            secret: &inner.secret,
            region: &inner.region,
        };
        let authorization = signer.authorize(&Request {
            method: method.as_str(),
            path: &path,
            query: &query,
            headers: &signed,
            body: &sum,
            time: &time,
        });
        let mut url = inner.server.clone();
        url.set_path(&path);
        url.set_query(Some(&*query).filter(|query| !query.is_empty()));
        let mut request = inner
            .client
            .request(method, url)
            .header(header::AUTHORIZATION, authorization);
        for (name, value) in signed.into_iter().filter(|(name, _)| *name != "host") {
            request = request.header(name, value);
        }
        request = match sent {
            Sent::Nothing => request,
            Sent::Bytes(bytes) => request.body(bytes),
            Sent::File { path, bytes, .. } => {
                let file = File::open(path).await.map_err(|error| {
                    Error::new(
                        Code::Storage,
                        format!("cannot read {}: {error}", path.display()),
                    )
                })?;
                request
                    .header(header::CONTENT_LENGTH, bytes)
                    .body(Body::from(file))
            }
        };
        let patience = SILENCE + Duration::from_secs(bytes / LEAST_RATE);
        match timeout(patience, request.send()).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                Err(self.unreachable(&format!("cannot be reached ({})", root_cause(&error))))
            }
            Err(_) => Err(self.unreachable("did not answer in time")),
        }
    }

    /// The answer, if it is a success.
    async fn accepted(&self, answer: Response) -> Result<Response, Error> {
        if answer.status().is_success() {
            return Ok(answer);
        }
        Err(self.refusal(answer).await)
    }

    /// As [`Self::accepted`]; `None` if there is no such object.
    async fn found(&self, answer: Response) -> Result<Option<Response>, Error> {
        if answer.status() != StatusCode::NOT_FOUND {
            return self.accepted(answer).await.map(Some);
        }
        let text = self.body(answer, LONGEST_ANSWER).await.unwrap_or_default();
        match failure(&text) {
            Some((code, _)) if code == "NoSuchBucket" => Err(self.no_bucket()),
            _ => Ok(None),
        }
    }

    fn no_bucket(&self) -> Error {
        let message = format!("{} does not exist", self.place());
        Error::new(Code::NotFound, message).hint("make the bucket, or correct `contexts.store`")
    }

    async fn refusal(&self, answer: Response) -> Error {
        let status = answer.status();
        if status.is_redirection() {
            let to = answer.headers().get(header::LOCATION);
            let to = to.and_then(|to| Url::parse(to.to_str().ok()?).ok());
            let to = to.map_or_else(|| "another address".to_owned(), |to| display_url(&to));
            return self
                .unreachable(&format!("redirects to {to}, which is not followed"))
                .hint("set `contexts.endpoint` and `contexts.region` to those of the bucket");
        }
        let text = self.body(answer, LONGEST_ANSWER).await.unwrap_or_default();
        let (code, message) = failure(&text).unwrap_or_default();
        let why = [code.as_str(), message.as_str()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(": ");
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(", {why}")
        };
        match status.as_u16() {
            401 | 403 => Error::new(
                Code::AccessDenied,
                format!("{} denies access ({status}{why})", self.place()),
            )
            .hint("check `contexts.access_key`, the secret `context-store`, `contexts.region`, and the clock of this machine"),
            404 => self.no_bucket(),
            _ => self.unreachable(&format!("answered with {status}{why}")),
        }
    }

    async fn chunk(&self, answer: &mut Response) -> Result<Option<bytes::Bytes>, Error> {
        match timeout(SILENCE, answer.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => {
                Err(self.unreachable(&format!("broke off its answer ({})", root_cause(&error))))
            }
            Err(_) => Err(self.unreachable("was silent for too long")),
        }
    }

    async fn body(&self, mut answer: Response, most: usize) -> Result<String, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(&mut answer).await? {
            body.extend_from_slice(&chunk);
            if body.len() > most {
                let message = format!("{} sent more than {most} bytes", self.place());
                return Err(Error::new(Code::Corrupt, message));
            }
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn unreachable(&self, why: &str) -> Error {
        Error::new(Code::Unreachable, format!("{} {why}", self.place()))
            .hint("check the network connection and `contexts.endpoint`, then try again")
    }

    /// For messages.
    fn place(&self) -> String {
        let bucket = self.0.root.trim_start_matches('/');
        format!("the bucket {bucket} at {}", host_of(&self.0.server))
    }
}

fn sum(path: &Path) -> Result<(String, u64), Error> {
    let read = || {
        let (mut file, mut sum, mut length) = (std::fs::File::open(path)?, Sha256::new(), 0);
        let mut buffer = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return Ok((HEXLOWER.encode(&sum.finalize()), length));
            }
            sum.update(&buffer[..read]);
            length += read as u64;
        }
    };
    read().map_err(|error: std::io::Error| {
        Error::new(
            Code::Storage,
            format!("cannot read {}: {error}", path.display()),
        )
    })
}

struct Page {
    objects: Vec<Object>,
    /// Where the next page begins.
    next: Option<String>,
}

/// Reads a `ListBucketResult`. Objects whose names are not ours are left out.
fn page(text: &str, prefix: &str) -> Option<Page> {
    let mut page = Page {
        objects: Vec::new(),
        next: None,
    };
    let (mut key, mut size, mut etag) = (None, None, String::new());
    let root = elements(text, |path, text| match path {
        ["ListBucketResult", "Contents", "Key"] => key = Some(text),
        ["ListBucketResult", "Contents", "Size"] => size = text.parse().ok(),
        ["ListBucketResult", "Contents", "ETag"] => etag = text,
        ["ListBucketResult", "Contents"] => {
            let (key, bytes, version) = (key.take(), size.take(), std::mem::take(&mut etag));
            let name = key.as_deref().and_then(|key| key.strip_prefix(prefix));
            if let (Some(name), Some(bytes)) = (name.filter(|name| is_plain(name)), bytes) {
                page.objects.push(Object {
                    name: name.to_owned(),
                    bytes,
                    version,
                });
            }
        }
        ["ListBucketResult", "NextContinuationToken"] => page.next = Some(text),
        _ => {}
    })?;
    (root == "ListBucketResult").then_some(page)
}

/// The code and the message of an `Error`.
fn failure(text: &str) -> Option<(String, String)> {
    let (mut code, mut message) = (None, String::new());
    elements(text, |path, text| match path {
        ["Error", "Code"] => code = Some(text),
        ["Error", "Message"] => message = text,
        _ => {}
    })?;
    let short = |text: String| text.chars().take(300).collect();
    Some((short(code?), short(message)))
}

/// Calls back at each element's end with its path and its text. Returns the name of the first; `None` if it is no XML.
fn elements(text: &str, mut end: impl FnMut(&[&str], String)) -> Option<String> {
    let mut reader = Reader::from_str(text);
    let (mut path, mut content, mut root) = (Vec::<String>::new(), String::new(), None);
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) => {
                let name = element.local_name().as_ref().to_owned();
                root.get_or_insert_with(|| name.clone());
                path.push(name);
                content.clear();
            }
            Event::Text(text) => content.push_str(&text),
            Event::CData(text) => content.push_str(&text),
            Event::GeneralRef(entity) => {
                let escaped = format!("&{};", &*entity);
                content.push_str(&quick_xml::escape::unescape(&escaped).ok()?);
            }
            Event::End(_) => {
                let names: Vec<_> = path.iter().map(String::as_str).collect();
                end(&names, std::mem::take(&mut content));
                path.pop();
            }
            Event::Eof => return root,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_list_is_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
              <Name>b</Name><Prefix>a&amp;b/</Prefix>
              <Contents><Key>a&amp;b/one.tier</Key><Size>17</Size><ETag>&quot;x&quot;</ETag></Contents>
              <Contents><Size>4</Size><Key>a&amp;b/sub/two</Key></Contents>
              <Contents><Key>other/three</Key><Size>4</Size></Contents>
              <Contents><Key>a&amp;b/four</Key><Size>many</Size></Contents>
              <IsTruncated>true</IsTruncated><NextContinuationToken>t/1=</NextContinuationToken>
            </ListBucketResult>"#;
        let page = page(text, "a&b/").unwrap();
        let expected = Object {
            name: "one.tier".to_owned(),
            bytes: 17,
            version: "\"x\"".to_owned(),
        };
        assert_eq!(page.objects, [expected]);
        assert_eq!(page.next.as_deref(), Some("t/1="));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "",
            "hello",
            "<html><body>Sign in</body></html>",
            "<ListBucketResult><",
        ] {
            assert!(page(text, "").is_none(), "{text}");
        }
        let text = "<Error><Code>NoSuchBucket</Code><Message>It &lt;is&gt; gone</Message></Error>";
        assert_eq!(
            failure(text),
            Some(("NoSuchBucket".to_owned(), "It <is> gone".to_owned()))
        );
        assert_eq!(failure("<html></html>"), None);
    }

    #[test]
    fn the_server_is_an_address_and_no_more() {
        let bucket = |endpoint: &str| {
            let options = BucketOptions {
                endpoint: endpoint.to_owned(),
                region: String::new(),
                bucket: "b".to_owned(),
                prefix: "/a/".to_owned(),
                access_key: "k".to_owned(),
                secret: "s".to_owned().into(),
            };
            Bucket::new(options).map_err(|error| error.code)
        };
        for endpoint in [
            "",
            "https://s3.example.com",
            "http://127.0.0.1:9000",
            "http://nas.local/",
        ] {
            assert_eq!(bucket(endpoint).unwrap().0.prefix, "a/", "{endpoint}");
        }
        for endpoint in [
            "s3.example.com",
            "http://s3.example.com",
            "ftp://nas.local",
            "https://user:secret@s3.example.com",
            "https://s3.example.com/bucket",
        ] {
            assert_eq!(
                bucket(endpoint).unwrap_err(),
                Code::ConfigInvalid,
                "{endpoint}"
            );
        }
        let server = bucket("").unwrap().0.server.to_string();
        assert_eq!(server, "https://s3.us-east-1.amazonaws.com/");
    }
}
