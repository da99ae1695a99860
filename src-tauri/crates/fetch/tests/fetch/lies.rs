//! Servers that refuse, lie, or redirect.

use crate::{
    TestDownload,
    server::{Content, Framing, Reply, Request, Server},
};
use secrecy::SecretString;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};
use tierbar_core::{Code, Error};

const MIB: usize = 1 << 20;

/// Returns the error of a transfer from a server with this answer, which leaves no file; and the number of requests.
async fn refused(behave: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Error, usize) {
    let server = Server::start(behave).await;
    let wanted = TestDownload::new(&server);
    let error = wanted.fetch().await.unwrap_err();
    assert!(wanted.names().is_empty(), "{:?}", wanted.names());
    (error, server.log().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_final_and_says_what_to_do() {
    for (status, code) in [
        (401, Code::AccessDenied),
        (403, Code::AccessDenied),
        (404, Code::RepositoryUnknown),
        (410, Code::RepositoryUnknown),
    ] {
        let (error, requests) = refused(move |_| Reply::status(status)).await;
        assert_eq!(error.code, code, "{error}");
        assert!(error.hint.is_some() && error.message.contains(&status.to_string()));
        assert_eq!(requests, 1, "{status} was requested again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_answers_fail_after_a_few_and_are_never_written() {
    let content = Content::new(4 * MIB, 1);
    type Twist = fn(Reply, &Request) -> Reply;
    let cases: [(&str, Twist); 8] = [
        ("a byte more than was requested", |mut reply, _| {
            reply.body = [&reply.body[..], &[7]].concat().into();
            reply.with("content-range", "bytes 0-2097152/4194304")
        }),
        ("a part that begins elsewhere", |mut reply, _| {
            reply.body = reply.body.slice(..1000);
            reply.with("content-range", "bytes 7-1006/4194304")
        }),
        ("no range", |reply, _| reply.without("content-range")),
        ("no sense", |reply, _| {
            reply.with("content-range", "bytes 5-3/4194304")
        }),
        ("beyond the end", |reply, _| {
            reply.with("content-range", "bytes 0-4194304/4194304")
        }),
        ("no total", |reply, _| {
            reply.with("content-range", "bytes 0-2097151/*")
        }),
        ("compressed", |reply, _| {
            reply.with("content-encoding", "gzip")
        }),
        ("another length than the range's", |mut reply, _| {
            reply.body = reply.body.slice(..1000);
            reply
        }),
    ];
    for (name, twist) in cases {
        let content = content.clone();
        let (error, requests) =
            refused(move |request| twist(content.answer(request), request)).await;
        assert_eq!(error.code, Code::Corrupt, "{name}: {error}");
        assert_eq!(requests, 5, "{name}");
    }
    let (error, requests) =
        refused(|_| Reply::status(416).with("content-range", "bytes */99")).await;
    assert_eq!((error.code, requests), (Code::Corrupt, 5), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn occasional_wrong_answers_are_tolerated() {
    let content = Content::new(12 * MIB, 2);
    let server = Server::start({
        let content = content.clone();
        move |request| {
            let reply = content.answer(request);
            if request.nth % 3 == 1 {
                reply.with("content-range", "bytes 0-0/12582912")
            } else {
                reply
            }
        }
    })
    .await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_beyond_the_requested_range_are_not_written() {
    let content = Content::new(3 * MIB, 3);
    let server = Server::start({
        let content = content.clone();
        move |request| {
            let mut reply = content.answer(request).framed(Framing::Chunked);
            reply.body = [&reply.body[..], &[0xee; 300_000]].concat().into();
            reply
        }
    })
    .await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    assert!(wanted.arrived() == content.bytes);

    let (error, requests) = {
        let content = content.clone();
        let server = Server::start(move |_| {
            let mut reply = content.whole().framed(Framing::Chunked);
            reply.body = [&reply.body[..], &[0xee; 300_000]].concat().into();
            reply
        })
        .await;
        let mut wanted = TestDownload::new(&server);
        wanted.spec.size = Some(3 * MIB as u64);
        (wanted.fetch().await.unwrap_err(), server.log().len())
    };
    assert_eq!((error.code, requests), (Code::Corrupt, 5), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_answer_is_continued_from_its_last_byte() {
    let content = Content::new(5 * MIB, 4);
    let server = Server::start({
        let content = content.clone();
        // At most 300 kB at a time, with correct headers.
        move |request| {
            let (start, end) = request.range().unwrap();
            content.part((start, end.min(start + 300_000)))
        }
    })
    .await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());

    let server = Server::start({
        let content = content.clone();
        // Fewer bytes than announced.
        move |request| {
            let mut reply = content.answer(request);
            let length = reply.body.len();
            reply.framing = Framing::Lie(length as u64);
            reply.body = reply.body.slice(..length.min(400_000));
            reply
        }
    })
    .await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_another_size_is_refused_before_a_byte_is_written() {
    let content = Content::new(MIB, 5);
    for ranges in [true, false] {
        let content = content.clone();
        let server = Server::start(move |request| {
            if ranges {
                content.answer(request)
            } else {
                content.whole()
            }
        })
        .await;
        let mut wanted = TestDownload::new(&server);
        wanted.spec.size = Some(MIB as u64 + 1);
        let error = wanted.fetch().await.unwrap_err();
        assert_eq!(error.code, Code::Corrupt);
        assert!(
            error.message.contains("1048576") && error.message.contains("1048577"),
            "{error}"
        );
        assert!(wanted.names().is_empty(), "{:?}", wanted.names());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_sha256_discards_the_file() {
    let content = Content::new(2 * MIB, 6);
    let flipped = Arc::new(AtomicBool::new(true));
    let server = Server::start({
        let (content, flipped) = (content.clone(), flipped.clone());
        move |request| {
            let mut reply = content.answer(request);
            if flipped.load(SeqCst) && request.starts_at() == 0 {
                let mut body = reply.body.to_vec();
                body[77] ^= 1;
                reply.body = body.into();
            }
            reply
        }
    })
    .await;
    let mut wanted = TestDownload::new(&server);
    wanted.spec.sha256 = Some(content.sha256());
    let error = wanted.fetch().await.unwrap_err();
    assert_eq!(error.code, Code::Corrupt);
    assert!(error.message.contains(&content.sha256()), "{error}");
    assert!(wanted.names().is_empty(), "{:?}", wanted.names());
    flipped.store(false, SeqCst);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_is_not_a_file() {
    for (kind, page, is_page) in [
        ("text/html; charset=utf-8", "\n <p>log in</p>", true),
        ("application/octet-stream", "<!DOCTYPE HTML><title>", true),
        ("text/plain", "<html lang=en>", true),
        ("text/html", "GGUF and so on", false),
        ("application/xml", "<xml/>", false),
    ] {
        for ranges in [true, false] {
            let mut content = Content::new(0, 0);
            content.bytes = page.into();
            let server = Server::start(move |request| {
                let reply = if ranges {
                    content.answer(request)
                } else {
                    content.whole()
                };
                reply.with("content-type", kind)
            })
            .await;
            let wanted = TestDownload::new(&server);
            match wanted.fetch().await {
                Ok(_) => assert!(!is_page, "{kind} {page}"),
                Err(error) => {
                    assert!(is_page && error.code == Code::Corrupt, "{error}");
                    assert!(error.message.contains("web page"), "{error}");
                    assert_eq!(server.log().len(), 1);
                }
            }
        }
    }
}

/// A hub that redirects to `storage`.
async fn hub(storage: &Server) -> Server {
    let to = storage.url("/blob?signature=secret");
    Server::start(move |_| Reply::redirect(&to)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_resolve_once_and_the_token_stays_with_the_hub() {
    let content = Content::new(16 * MIB, 7);
    let storage = Server::of(&content).await;
    let hub = hub(&storage).await;
    let mut wanted = TestDownload::new(&hub);
    wanted.tokens = Arc::new(|_| Some(SecretString::from("hf_secret")));
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    assert!(storage.log().len() > 2);
    assert_eq!(hub.log().len(), 1);
    assert_eq!(hub.log()[0].headers["authorization"], "Bearer hf_secret");
    assert!(
        storage
            .log()
            .iter()
            .all(|request| !request.headers.contains_key("authorization"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_redirect_is_resolved_once_more() {
    let content = Content::new(16 * MIB, 8);
    for expired in [400, 401, 403, 404, 410] {
        let storage = Server::start({
            let content = content.clone();
            // The third request finds its signature expired; later ones have a new one.
            move |request| match request.nth {
                2 => Reply::status(expired),
                _ => content.answer(request),
            }
        })
        .await;
        let hub_server = hub(&storage).await;
        let wanted = TestDownload::new(&hub_server);
        let fetched = wanted.fetch().await;
        assert_eq!(fetched.unwrap().sha256, content.sha256(), "{expired}");
        assert_eq!(hub_server.log().len(), 2);
    }

    let storage = Server::start(|_| Reply::status(403)).await;
    let hub_server = hub(&storage).await;
    let wanted = TestDownload::new(&hub_server);
    let error = wanted.fetch().await.unwrap_err();
    assert_eq!(error.code, Code::AccessDenied);
    assert_eq!((hub_server.log().len(), storage.log().len()), (2, 2));
    assert!(!format!("{error:?}").contains("signature"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_headers_are_no_answer() {
    let server = Server::start(|request| {
        let reply = Reply::status(200);
        match request.nth {
            0 => reply.with("x-much", "x".repeat(1 << 20)),
            _ => (0..5000).fold(reply, |mut reply, _| {
                reply.headers.push(("x-many", "1".to_owned()));
                reply
            }),
        }
    })
    .await;
    let web = tierbar_fetch::Web::new(TestDownload::new(&server).options).unwrap();
    for _ in 0..2 {
        let error = web
            .get(tierbar_fetch::Get::new(server.url("/")))
            .await
            .unwrap_err();
        assert_eq!(error.code, Code::Unreachable, "{error}");
    }
}

/// The environment belongs to a whole process.
#[tokio::test(flavor = "multi_thread")]
async fn the_environment_proxy_is_used_except_for_no_proxy() {
    let content = Content::new(MIB, 9);
    let proxy = Server::of(&content).await;
    let direct = Server::of(&content).await;
    let wanted = TestDownload::new(&direct);
    let fetch = async |url: &str, name: &str| {
        let status = tokio::process::Command::new(env!("CARGO_BIN_EXE_fetch-file"))
            .arg(url)
            .arg(wanted.path(name))
            .args(["--margin", "0"])
            .env("HTTP_PROXY", format!("http://{}", proxy.address))
            .env("NO_PROXY", "127.0.0.1")
            .env_remove("REQUEST_METHOD")
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .status();
        assert!(status.await.unwrap().success(), "{url}");
    };
    fetch("http://hub.invalid/file", "one").await;
    assert_eq!(proxy.log()[0].target, "http://hub.invalid/file");
    let requests = proxy.log().len();
    fetch(wanted.spec.url.as_str(), "two").await;
    assert_eq!(direct.log()[0].target, "/model.gguf");
    assert_eq!(proxy.log().len(), requests);
}
