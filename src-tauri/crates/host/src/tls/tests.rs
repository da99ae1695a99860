use super::*;
use crate::serve::{ClientLimits, ServeOptions, serve};
use axum::{Router, routing::get};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use std::{collections::BTreeSet, io, net::SocketAddr, os::unix::fs::PermissionsExt};
use tempfile::TempDir;
use tierbar_edge::origin::TlsMark;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

fn folder() -> (TempDir, Folder) {
    let home = tempfile::tempdir().unwrap();
    let folder = Folder::open(Some(home.path().to_owned())).unwrap();
    (home, folder)
}

fn here() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A server that returns whether a request came over TLS.
async fn served(tls: &Tls) -> SocketAddr {
    let listener = TcpListener::bind(here()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |secure: Option<axum::Extension<TlsMark>>| async move {
        if secure.is_some() {
            "encrypted"
        } else {
            "plain"
        }
    };
    let options = ServeOptions {
        router: Router::new().route("/", get(answer)),
        tls: Some(tls.acceptor.clone()),
        limits: ClientLimits::default(),
        closing: CancellationToken::new(),
    };
    tokio::spawn(serve(listener, options));
    address
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Sends a request over TLS from a client that trusts only the certificate in `file`.
async fn fetch(address: SocketAddr, file: &Path, name: &str) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(file).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await?;
    stream.write_all(REQUEST).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn a_certificate_is_created_once_and_has_all_names() {
    let (_home, folder) = folder();
    let server = ServerConfig {
        names: vec!["mac-mini.local".to_owned()],
        ..ServerConfig::default()
    };
    let tls = Tls::open(&folder, &server, &["203.0.113.7".parse().unwrap()]).unwrap();
    for file in [folder.file(CERTIFICATE), folder.file(CERTIFICATE_KEY)] {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(tls.fingerprint.len(), 32 * 3 - 1);
    let address = served(&tls).await;
    for name in ["localhost", "127.0.0.1", "mac-mini.local", "203.0.113.7"] {
        let answer = fetch(address, &folder.file(CERTIFICATE), name)
            .await
            .unwrap();
        assert!(answer.ends_with("encrypted"), "{name}: {answer}");
    }
    let wrong = fetch(address, &folder.file(CERTIFICATE), "other.local").await;
    assert!(
        wrong
            .unwrap_err()
            .to_string()
            .contains("not valid for name")
    );

    // From this machine also without TLS.
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(REQUEST).await.unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("plain"), "{answer}");

    let again = Tls::open(&folder, &ServerConfig::default(), &[]).unwrap();
    assert_eq!(again.fingerprint, tls.fingerprint);
    // Another server's certificate is not trusted.
    let (_other_home, other) = self::folder();
    Tls::open(&other, &server, &[]).unwrap();
    assert!(
        fetch(address, &other.file(CERTIFICATE), "localhost")
            .await
            .is_err()
    );
}

#[test]
fn a_missing_or_expiring_certificate_is_replaced() {
    let (_home, folder) = folder();
    let open = || Tls::open(&folder, &ServerConfig::default(), &[]).unwrap();
    let first = open().fingerprint;
    let text = fs::read_to_string(folder.file(CERTIFICATE)).unwrap();
    let until = text.lines().nth(1).unwrap().to_owned();
    assert!(until.starts_with(NOT_AFTER), "{until}");
    let soon = jiff::Zoned::now().date().tomorrow().unwrap();
    let ending = text.replace(&until, &format!("{NOT_AFTER}{soon}"));
    fs::write(folder.file(CERTIFICATE), ending).unwrap();
    let second = open().fingerprint;
    assert_ne!(first, second);
    assert_eq!(open().fingerprint, second);
    fs::remove_file(folder.file(CERTIFICATE_KEY)).unwrap();
    assert_ne!(open().fingerprint, second);
}

#[tokio::test]
async fn an_invalid_user_certificate_is_reported_with_its_file() {
    let (home, folder) = folder();
    let (_elsewhere, theirs) = self::folder();
    let own = Tls::open(&theirs, &ServerConfig::default(), &[]).unwrap();
    let path = |path: PathBuf| path.to_str().unwrap().to_owned();
    let server = ServerConfig {
        certificate: path(theirs.file(CERTIFICATE)),
        key: path(theirs.file(CERTIFICATE_KEY)),
        ..ServerConfig::default()
    };
    let tls = Tls::open(&folder, &server, &[]).unwrap();
    assert_eq!(tls.fingerprint, own.fingerprint);
    assert!(!folder.file(CERTIFICATE).exists());
    let address = served(&tls).await;
    let answer = fetch(address, &theirs.file(CERTIFICATE), "localhost").await;
    assert!(answer.unwrap().ends_with("encrypted"));

    Tls::open(&folder, &ServerConfig::default(), &[]).unwrap();
    let text = home.path().join("text.pem");
    fs::write(&text, "It was a dark and stormy night.").unwrap();
    for (certificate, key, expected) in [
        (
            home.path().join("none.pem"),
            theirs.file(CERTIFICATE_KEY),
            "none.pem is not a certificate",
        ),
        (
            text.clone(),
            theirs.file(CERTIFICATE_KEY),
            "text.pem is not a certificate",
        ),
        (
            theirs.file(CERTIFICATE),
            text,
            "text.pem is not a private key",
        ),
        (
            theirs.file(CERTIFICATE),
            folder.file(CERTIFICATE_KEY),
            "certificate-key.pem is not a private key of the certificate",
        ),
    ] {
        let server = ServerConfig {
            certificate: path(certificate),
            key: path(key),
            ..ServerConfig::default()
        };
        let Err(error) = Tls::open(&folder, &server, &[]) else {
            panic!("{expected}: it was taken");
        };
        assert_eq!(error.code, Code::ConfigInvalid);
        assert!(error.message.contains(expected), "{error}");
    }
}

#[test]
fn a_loopback_certificate_also_names_the_network_address() {
    let loopback: IpAddr = "127.0.0.1".parse().unwrap();
    let named = certificate_names(&ServerConfig::default(), &[loopback, loopback]);
    let expected: BTreeSet<_> = ["localhost", "127.0.0.1", "::1"]
        .map(str::to_owned)
        .into_iter()
        .chain(way_out().map(|ip| ip.to_string()))
        .collect();
    assert_eq!(named, Vec::from_iter(expected));
}

#[test]
fn a_certificate_that_cannot_be_read_now_is_not_replaced() {
    let (_home, folder) = folder();
    // It opens, and no byte of it can be read.
    fs::create_dir(folder.file(CERTIFICATE)).unwrap();
    fs::write(folder.file(CERTIFICATE_KEY), "its key").unwrap();
    let error = own_certificate(&folder, &ServerConfig::default(), &[]).unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(error.message.contains("cannot be read"), "{error}");
    let key = fs::read_to_string(folder.file(CERTIFICATE_KEY)).unwrap();
    assert_eq!(key, "its key");
}
