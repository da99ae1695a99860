use super::*;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use data_encoding::BASE64;
use md5::{Digest, Md5};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Arc,
};
use tierbar_skip::race::{Found, LINKS, race};

/// A temporary folder by its real path. On macOS, that of the system lies behind a link.
fn tempdir() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::temp_dir().canonicalize().unwrap()).unwrap()
}

/// What the server does beside keeping objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Honest,
    Shorter,
    Longer,
    KeepsVersions,
    Redirects,
    Denies,
    NoBucket,
    Page,
    /// Returns a list of empty pages that never ends.
    EndlessList,
}

type StoredObjects = Arc<parking_lot::Mutex<BTreeMap<String, Vec<u8>>>>;

async fn answer(
    State((kept, manner)): State<(StoredObjects, Manner)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let query = parts.uri.query().unwrap();
    let signed = |what: &str| assert!(query.contains(what), "{query}");
    signed("X-Amz-Signature=");
    signed("X-Amz-Credential=key%2F");
    signed("%2Fus-east-1%2Fs3%2Faws4_request");
    let error = |status: u16, code: &str| {
        let body = format!("<Error><Code>{code}</Code><Message>So it is.</Message></Error>");
        (StatusCode::from_u16(status).unwrap(), body).into_response()
    };
    match manner {
        Manner::Redirects => {
            let to = [(header::LOCATION, "http://169.254.169.254/latest?token=1")];
            return (StatusCode::TEMPORARY_REDIRECT, to).into_response();
        }
        Manner::Denies => return error(403, "SignatureDoesNotMatch"),
        Manner::NoBucket => return error(404, "NoSuchBucket"),
        Manner::Page => return "<html><body>Welcome to the hotel</body></html>".into_response(),
        Manner::EndlessList => {
            let token = uuid::Uuid::new_v4();
            let next = format!("<NextContinuationToken>{token}</NextContinuationToken>");
            return format!("<ListBucketResult>{next}</ListBucketResult>").into_response();
        }
        _ => {}
    }
    let path = parts.uri.path().to_owned();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let mut kept = kept.lock();
    match parts.method.as_str() {
        "PUT" if parts.headers.contains_key("if-none-match") && kept.contains_key(&path) => {
            error(412, "PreconditionFailed")
        }
        "PUT" => {
            let sum = BASE64.encode(&Md5::digest(&body));
            assert_eq!(parts.headers["content-md5"], sum);
            assert_eq!(parts.headers["content-length"], body.len().to_string());
            signed("X-Amz-SignedHeaders=content-md5%3Bhost");
            kept.insert(path, body.to_vec());
            ().into_response()
        }
        "DELETE" => match kept.remove(&path) {
            Some(_) => {
                let marker = (manner == Manner::KeepsVersions).to_string();
                (StatusCode::NO_CONTENT, [("x-amz-delete-marker", marker)]).into_response()
            }
            None => error(404, "NoSuchKey"),
        },
        "HEAD" => match kept.get(&path) {
            Some(object) => [(header::CONTENT_LENGTH, object.len())].into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        _ if path == "/b/" => {
            let objects = kept.iter().fold(String::new(), |list, (path, object)| {
                let key = path.trim_start_matches("/b/");
                let size = object.len();
                format!("{list}<Contents><Key>{key}</Key><Size>{size}</Size></Contents>")
            });
            format!("<ListBucketResult>{objects}</ListBucketResult>").into_response()
        }
        _ => match kept.get(&path).cloned() {
            None => error(404, "NoSuchKey"),
            Some(mut object) => {
                match manner {
                    Manner::Shorter => object.truncate(object.len() - 1),
                    Manner::Longer => object.push(0),
                    _ => {}
                }
                // Without its length, as a server may do.
                let pieces = object
                    .chunks(1000)
                    .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()));
                let pieces: Vec<_> = pieces.collect();
                Body::from_stream(futures_util::stream::iter(pieces)).into_response()
            }
        },
    }
}

async fn bucket(manner: Manner) -> Objects {
    let router = Router::new()
        .fallback(answer)
        .with_state((StoredObjects::default(), manner));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Objects::bucket(options(endpoint)).unwrap()
}

fn options(endpoint: String) -> BucketOptions {
    BucketOptions {
        endpoint,
        region: String::new(),
        bucket: "b".to_owned(),
        prefix: "mine".to_owned(),
        access_key: "key".to_owned(),
        secret: "secret".to_owned().into(),
    }
}

fn file(home: &Path, bytes: &[u8]) -> PathBuf {
    let path = home.join("file");
    fs::write(&path, bytes).unwrap();
    path
}

async fn keeps_objects(store: &Objects) {
    let home = tempdir();
    assert_eq!(store.list().await.unwrap(), []);
    assert_eq!(store.read("one", 10).await.unwrap(), None);
    assert!(!store.remove("one").await.unwrap());
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    let from = file(home.path(), &bytes);
    store.upload("one", &from).await.unwrap();
    let listed = store.list().await.unwrap();
    assert_eq!((&*listed[0].name, listed[0].bytes), ("one", 100_000));
    assert_eq!(store.read("one", 10).await.unwrap().unwrap(), bytes[..10]);
    let to = file(home.path(), b"something longer that was there before");
    store.download("one", &to, 100_000).await.unwrap();
    assert!(fs::read(&to).unwrap() == bytes);
    for expected in [99_999, 100_001] {
        let error = store.download("one", &to, expected).await.unwrap_err();
        assert_eq!(error.code, Code::Corrupt, "{expected}");
    }
    store.create("two", b"first".to_vec()).await.unwrap();
    store.create("two", b"second".to_vec()).await.unwrap();
    assert_eq!(store.read("two", 99).await.unwrap().unwrap(), b"first");
    store.upload("two", &from).await.unwrap();
    let replaced = store.read("two", 200_000).await.unwrap().unwrap();
    assert!(replaced == fs::read(&from).unwrap());
    assert!(!store.remove("one").await.unwrap());
    assert_eq!(store.list().await.unwrap().len(), 1);
    let gone = store.download("one", &to, 5).await.unwrap_err();
    assert_eq!(gone.code, Code::NotFound);
    for name in ["", "../one", "a/b", ".hidden"] {
        let error = store.read(name, 1).await.unwrap_err();
        assert_eq!(error.code, Code::Internal, "{name}");
    }
}

#[tokio::test]
async fn a_folder_keeps_objects() {
    let home = tempdir();
    keeps_objects(&Objects::folder(home.path().join("store"))).await;
    let names = fs::read_dir(home.path().join("store")).unwrap();
    assert_eq!(names.count(), 1);
}

#[tokio::test]
async fn a_bucket_keeps_objects() {
    keeps_objects(&bucket(Manner::Honest).await).await;
}

#[tokio::test]
async fn a_bucket_with_versioning_says_that_it_keeps_them() {
    let store = bucket(Manner::KeepsVersions).await;
    store.create("one", Vec::new()).await.unwrap();
    assert!(store.remove("one").await.unwrap());
}

#[tokio::test]
async fn an_error_shows_no_signature() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let store = Objects::bucket(options(endpoint)).unwrap();
    let error = store.read("one", 1).await.unwrap_err();
    assert_eq!(error.code, Code::Unreachable);
    for text in [format!("{error:?}"), format!("{store:?}")] {
        assert!(
            !text.contains("X-Amz-") && !text.contains("secret"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_folder_of_a_missing_disk_is_an_error() {
    let home = tempdir();
    let store = Objects::folder(home.path().join("disk/store"));
    assert_eq!(store.list().await.unwrap_err().code, Code::Storage);
    let error = store.create("one", Vec::new()).await.unwrap_err();
    assert_eq!(error.code, Code::Storage);
    // Neither a folder nor a pipe is opened.
    let store = Objects::folder(home.path().to_owned());
    fs::create_dir(home.path().join("one")).unwrap();
    assert_eq!(store.read("one", 1).await.unwrap_err().code, Code::Corrupt);
}

/// What an agent's command could do, where it may write beside the store.
#[test]
fn a_store_in_whose_place_a_link_appears_is_not_left() {
    let home = tempdir();
    let at = |name: &str| home.path().join(name);
    for (folder, text) in [("store", "own"), ("private", "secret")] {
        fs::create_dir(at(folder)).unwrap();
        fs::write(at(folder).join("one"), text).unwrap();
    }
    fs::write(at("private/kept"), "").unwrap();
    let store = Objects::folder(at("store"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let attempt = || {
        runtime.block_on(async {
            let _refused = store.remove("two").await;
            let _refused = store.create("two", b"new".to_vec()).await;
            let _refused = store.remove("kept").await;
            let listed = store.list().await;
            let is_foreign = listed.is_ok_and(|all| all.iter().any(|one| one.name == "kept"));
            let read = store.read("one", 99).await;
            (read, is_foreign)
        })
    };
    let mut used = || {
        let (read, is_foreign) = attempt();
        let names = fs::read_dir(at("private")).unwrap();
        let names: BTreeSet<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        let is_whole = names
            .iter()
            .map(|name| name.to_str().unwrap())
            .eq(["kept", "one"]);
        match read {
            _ if is_foreign || !is_whole => Found::Foreign,
            Ok(Some(bytes)) if bytes == b"own" => Found::Own,
            Ok(Some(_)) => Found::Foreign,
            // Without the folder, the store is empty.
            Ok(None) | Err(_) => Found::Refused,
        }
    };
    race(&LINKS, &at("store"), &at("private"), &mut [&mut used]);
}

#[tokio::test]
async fn a_server_that_lies_is_an_error() {
    let home = tempdir();
    let from = file(home.path(), &[7; 5000]);
    for manner in [Manner::Shorter, Manner::Longer] {
        let store = bucket(manner).await;
        store.upload("one", &from).await.unwrap();
        let to = home.path().join("to");
        let error = store.download("one", &to, 5000).await.unwrap_err();
        assert_eq!(error.code, Code::Corrupt, "{manner:?}");
    }
    for (manner, code, word) in [
        (
            Manner::Redirects,
            Code::Unreachable,
            "http://169.254.169.254/latest,",
        ),
        (
            Manner::Denies,
            Code::AccessDenied,
            "SignatureDoesNotMatch: So it is.",
        ),
        (
            Manner::NoBucket,
            Code::NotFound,
            "the bucket b at 127.0.0.1",
        ),
        (Manner::Page, Code::Corrupt, "did not return a list"),
        (
            Manner::EndlessList,
            Code::Corrupt,
            "a list of more than 1000 pages",
        ),
    ] {
        let store = bucket(manner).await;
        let error = store.list().await.unwrap_err();
        assert_eq!(error.code, code, "{manner:?}");
        assert!(error.message.contains(word), "{error}");
        assert!(error.hint.is_some());
        assert!(!format!("{error:?}").contains("X-Amz-"), "{error:?}");
    }
    let error = bucket(Manner::Redirects).await.upload("one", &from).await;
    assert_eq!(error.unwrap_err().code, Code::Unreachable);
}
