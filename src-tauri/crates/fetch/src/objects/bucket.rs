//! A bucket of Amazon S3, or of any server that speaks as it does: Cloudflare R2, Backblaze B2, MinIO, Garage and others.
//!
//! Of S3's API it uses `GetObject`, `PutObject`, `HeadObject`, `DeleteObject` and `ListObjectsV2`, with the bucket in the path, which every
//! such server understands. rusty-s3 signs each request in its URL, which no message shows.

use super::{
    MOST_LISTED, Object, missing_object_error, storage_error, too_long, wrong_length,
    xml::{read_failure, read_page},
};
use crate::{
    blocking,
    loopback::{build_client, strict_client},
    remote::is_near,
    web::{host_of, refused_redirect, root_cause},
};
use data_encoding::BASE64;
use http::{StatusCode, header};
use md5::{Digest, Md5};
use reqwest::{Body, RequestBuilder, Response};
use rusty_s3::{Bucket as Place, Credentials, S3Action, UrlStyle};
use secrecy::{ExposeSecret, SecretString};
use std::{io::Read, path::Path, time::Duration};
use tierbar_core::{Code, Error, units::file_size};
use tokio::{fs::File, io::AsyncWriteExt, time::timeout};
use url::Url;

const CONNECT: Duration = Duration::from_secs(15);
/// The longest silence of a server.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a signed request may be sent, and so how slow this machine's clock may be. Amazon accepts as much.
const SIGNED_FOR: Duration = Duration::from_secs(15 * 60);
/// Slower than this, in bytes per second, an upload is given up.
const LEAST_RATE: u64 = 32 << 10;
/// `PutObject` takes no more.
const MOST_BYTES: u64 = 5 << 30;
/// A page of a list has a thousand objects of some hundreds of bytes; the text of an error is far shorter.
const LONGEST_ANSWER: usize = 4 << 20;
/// The most pages of a list, which may be empty and go on for ever,
const MOST_PAGES: usize = 1000;
/// and how long all of them may take.
const LISTING: Duration = Duration::from_secs(10 * 60);

/// How long an answer in words may take.
const ANSWERING: Duration = Duration::from_secs(2 * 60);

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

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    client: reqwest::Client,
    place: Place,
    credentials: Credentials,
    /// Empty, or with a slash at its end.
    prefix: String,
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
        let builder = strict_client(CONNECT);
        let client = build_client(if is_near(&server) {
            builder.no_proxy()
        } else {
            builder
        })?;
        let place = Place::new(server, UrlStyle::Path, options.bucket, region)
            .map_err(|error| invalid(&format!("cannot be used: {error}")))?;
        let prefix = options.prefix.trim_matches('/');
        Ok(Self {
            client,
            place,
            credentials: Credentials::new(options.access_key, options.secret.expose_secret()),
            prefix: match prefix {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
        })
    }

    pub(super) async fn list(&self) -> Result<Vec<Object>, Error> {
        timeout(LISTING, self.pages())
            .await
            .unwrap_or_else(|_| Err(self.unreachable("did not list its objects in time")))
    }

    async fn pages(&self) -> Result<Vec<Object>, Error> {
        let (mut objects, mut after) = (Vec::new(), None::<String>);
        for _ in 0..MOST_PAGES {
            // Without a key it is the bucket that answers, with a list.
            let mut action = self.place.get_object(Some(&self.credentials), "");
            action.query_mut().insert("list-type", "2");
            action.query_mut().insert("prefix", &*self.prefix);
            if let Some(token) = &after {
                action.query_mut().insert("continuation-token", &**token);
            }
            let request = self.client.get(action.sign(SIGNED_FOR));
            let answer = self.accepted(self.send(request, 0).await?).await?;
            let text = self.body(answer).await?;
            let page = read_page(&text, &self.prefix).ok_or_else(|| {
                self.corrupt("did not return a list of objects")
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
        Err(self
            .corrupt(&format!("returned a list of more than {MOST_PAGES} pages"))
            .hint("set `contexts.store` to a bucket or folder of its own: s3://BUCKET/FOLDER"))
    }

    pub(super) async fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let range = format!("bytes=0-{}", most.saturating_sub(1));
        let answer = self.send(self.get(name).header(header::RANGE, range), 0);
        let answer = answer.await?;
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

    pub(super) async fn create(&self, name: &str, bytes: Vec<u8>) -> Result<(), Error> {
        let (sum, length) = (BASE64.encode(&Md5::digest(&bytes)), bytes.len() as u64);
        let answer = self.put(name, bytes.into(), length, &sum, true).await?;
        // There is one, or another machine was faster.
        if matches!(answer.status().as_u16(), 409 | 412) {
            return Ok(());
        }
        self.accepted(answer).await.map(drop)
    }

    pub(super) async fn upload(&self, name: &str, from: &Path) -> Result<(), Error> {
        let path = from.to_owned();
        let (sum, bytes) = blocking("reading the context", move || sum(&path)).await?;
        if bytes > MOST_BYTES {
            let (bytes, most) = (file_size(bytes), file_size(MOST_BYTES));
            let message = format!("the context has {bytes}; S3 takes at most {most} at once");
            return Err(Error::new(Code::PayloadTooLarge, message)
                .hint("save it with a quantized KV cache, or use a folder as the store"));
        }
        let file = File::open(from).await;
        let file = file.map_err(|error| storage_error("read", from, &error))?;
        let answer = self.put(name, file.into(), bytes, &sum, false).await?;
        self.accepted(answer).await?;
        let key = self.key(name);
        let head = self.place.head_object(Some(&self.credentials), &key);
        let head = self.send(self.client.head(head.sign(SIGNED_FOR)), 0);
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
        let answer = self.found(self.send(self.get(name), 0).await?).await?;
        let mut answer = answer.ok_or_else(|| missing_object_error(&self.place()))?;
        if let Some(found) = answer.content_length().filter(|found| *found != bytes) {
            return Err(wrong_length(&self.place(), found, bytes));
        }
        let failed = |error| storage_error("write", to, &error);
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

    /// Returns whether older versions stay.
    pub(super) async fn remove(&self, name: &str) -> Result<bool, Error> {
        let key = self.key(name);
        let action = self.place.delete_object(Some(&self.credentials), &key);
        let request = self.client.delete(action.sign(SIGNED_FOR));
        let answer = self.found(self.send(request, 0).await?).await?;
        // A bucket with versioning hides the object behind a marker.
        let marker = answer
            .as_ref()
            .and_then(|answer| answer.headers().get("x-amz-delete-marker"));
        Ok(marker.is_some_and(|marker| marker.as_bytes().eq_ignore_ascii_case(b"true")))
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn get(&self, name: &str) -> RequestBuilder {
        let key = self.key(name);
        let action = self.place.get_object(Some(&self.credentials), &key);
        self.client.get(action.sign(SIGNED_FOR))
    }

    /// Sends an object with the MD5 of its bytes in base64, so that the server refuses any others. `new`: unless there is one.
    async fn put(
        &self,
        name: &str,
        body: Body,
        bytes: u64,
        sum: &str,
        new: bool,
    ) -> Result<Response, Error> {
        let key = self.key(name);
        let mut action = self.place.put_object(Some(&self.credentials), &key);
        action.headers_mut().insert("content-md5", sum);
        if new {
            action.headers_mut().insert("if-none-match", "*");
        }
        let mut request = self.client.put(action.sign(SIGNED_FOR));
        for (name, value) in action.headers_mut().iter() {
            request = request.header(name, value);
        }
        let request = request.header(header::CONTENT_LENGTH, bytes).body(body);
        self.send(request, bytes).await
    }

    /// Sends a request with a body of so many bytes, and waits for the head of its answer.
    async fn send(&self, request: RequestBuilder, bytes: u64) -> Result<Response, Error> {
        let patience = SILENCE + Duration::from_secs(bytes / LEAST_RATE);
        match timeout(patience, request.send()).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                Err(self.unreachable(&format!("cannot be reached ({})", root_cause(&error))))
            }
            Err(_) => Err(self.unreachable("did not answer in time")),
        }
    }

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
        let text = self.body(answer).await.unwrap_or_default();
        match read_failure(&text) {
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
            return self
                .unreachable(&refused_redirect(answer.headers()))
                .hint("set `contexts.endpoint` and `contexts.region` to those of the bucket");
        }
        let text = self.body(answer).await.unwrap_or_default();
        let (code, message) = read_failure(&text).unwrap_or_default();
        let why = match (code.as_str(), message.as_str()) {
            ("", "") => String::new(),
            (why, "") | ("", why) => format!(", {why}"),
            (code, message) => format!(", {code}: {message}"),
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

    async fn body(&self, mut answer: Response) -> Result<String, Error> {
        let text = async {
            let mut body = Vec::new();
            while let Some(chunk) = self.chunk(&mut answer).await? {
                body.extend_from_slice(&chunk);
                if body.len() > LONGEST_ANSWER {
                    return Err(self.corrupt(&format!("sent more than {LONGEST_ANSWER} bytes")));
                }
            }
            Ok(String::from_utf8_lossy(&body).into_owned())
        };
        timeout(ANSWERING, text)
            .await
            .unwrap_or_else(|_| Err(self.unreachable("did not send all of its answer in time")))
    }

    fn unreachable(&self, why: &str) -> Error {
        Error::new(Code::Unreachable, format!("{} {why}", self.place()))
            .hint("check the network connection and `contexts.endpoint`, then try again")
    }

    fn corrupt(&self, why: &str) -> Error {
        Error::new(Code::Corrupt, format!("{} {why}", self.place()))
    }

    /// For messages.
    fn place(&self) -> String {
        let place = &self.place;
        format!(
            "the bucket {} at {}",
            place.name(),
            host_of(place.base_url())
        )
    }
}

/// The MD5 of a file's bytes, in base64, and how many they are.
fn sum(path: &Path) -> Result<(String, u64), Error> {
    let read = || {
        let (mut file, mut sum, mut length) = (std::fs::File::open(path)?, Md5::new(), 0);
        let mut buffer = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return Ok((BASE64.encode(&sum.finalize()), length));
            }
            sum.update(&buffer[..read]);
            length += read as u64;
        }
    };
    read().map_err(|error| storage_error("read", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(bucket(endpoint).unwrap().prefix, "a/", "{endpoint}");
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
        let place = bucket("").unwrap().place.base_url().to_string();
        assert_eq!(place, "https://s3.us-east-1.amazonaws.com/b/");
    }
}
