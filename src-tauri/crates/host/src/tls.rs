//! The server's certificate: the user's, or one that Tierbar creates once and keeps, so that its fingerprint stays the
//! same.

use crate::{
    folder::{CERTIFICATE, CERTIFICATE_KEY, Folder},
    whole_file::write_private,
};
use jiff::civil::Date;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig as TlsConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::ErrorKind,
    net::{IpAddr, UdpSocket},
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{Code, Error, config::ServerConfig};
use tokio_rustls::TlsAcceptor;

/// Apple's systems trust no server certificate that is valid for longer.
const VALID_DAYS: i64 = 825;
/// How long before its end a certificate is replaced, at a start.
const RENEWED_DAYS: i64 = 30;
/// The prefix of the line before the certificate in its file.
const NOT_AFTER: &str = "Not after: ";

#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// SHA-256 of the certificate, as browsers show it.
    pub(crate) fingerprint: String,
}

impl Tls {
    /// Reads the configured certificate, or our own for these addresses, which is created if necessary. Blocking.
    ///
    /// # Errors
    /// `ConfigInvalid` with the file that is not a certificate or key, or is the key of another certificate; `Storage` if
    /// our own cannot be stored.
    pub(crate) fn open(
        folder: &Folder,
        server: &ServerConfig,
        addresses: &[IpAddr],
    ) -> Result<Self, Error> {
        let (certificate, key) = if server.certificate.is_empty() {
            own_certificate(folder, server, addresses)?
        } else {
            (
                folder.configured(&server.certificate),
                folder.configured(&server.key),
            )
        };
        let wrong = |path: &Path, what: &str, why: &dyn std::fmt::Display| {
            let message = format!("{} is not a {what} in PEM format: {why}", path.display());
            Error::new(Code::ConfigInvalid, message).hint(
                "see `certificate` and `key` under [server] in config.toml; leave both empty to use a generated certificate",
            )
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(&certificate)
            .and_then(Iterator::collect)
            .map_err(|why| wrong(&certificate, "certificate", &why))?;
        let leaf = chain
            .first()
            .ok_or_else(|| wrong(&certificate, "certificate", &"there is none in it"))?;
        let fingerprint = fingerprint(leaf);
        let secret =
            PrivateKeyDer::from_pem_file(&key).map_err(|why| wrong(&key, "private key", &why))?;
        let mut config = TlsConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::new(Code::Internal, error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|why| wrong(&key, "private key of the certificate", &why))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            fingerprint,
        })
    }
}

fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let hash = Sha256::digest(certificate.as_ref());
    let bytes: Vec<_> = hash.iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}

fn own_certificate(
    folder: &Folder,
    server: &ServerConfig,
    addresses: &[IpAddr],
) -> Result<(PathBuf, PathBuf), Error> {
    let (certificate, key) = (folder.file(CERTIFICATE), folder.file(CERTIFICATE_KEY));
    let today = jiff::Zoned::now().date();
    let is_valid = match fs::read_to_string(&certificate) {
        Ok(text) => is_valid_long_enough(&text, today),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => false,
        // Clients trust this one: it is not replaced because it cannot be read now.
        Err(error) => {
            let message = format!("{} cannot be read: {error}", certificate.display());
            return Err(Error::new(Code::Storage, message).hint("check the file and its disk"));
        }
    };
    if is_valid && key.is_file() {
        return Ok((certificate, key));
    }
    let impossible = |error: &dyn std::fmt::Display| {
        let message = format!("a certificate could not be generated: {error}");
        Error::new(Code::Internal, message)
    };
    let until = today
        .checked_add(jiff::Span::new().days(VALID_DAYS))
        .map_err(|error| impossible(&error))?;
    let secret = KeyPair::generate().map_err(|error| impossible(&error))?;
    let mut params = CertificateParams::new(certificate_names(server, addresses))
        .map_err(|error| impossible(&error))?;
    params
        .distinguished_name
        .push(DnType::CommonName, "Tierbar on this machine");
    let midnight = |date: Date| {
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        date_time_ymd(date.year().into(), month, day)
    };
    params.not_before = midnight(today.yesterday().unwrap_or(today));
    params.not_after = midnight(until);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let made = params
        .self_signed(&secret)
        .map_err(|error| impossible(&error))?;
    let text = format!(
        "Tierbar's generated certificate. Delete this file to generate another one at the next start.\n{NOT_AFTER}{until}\n{}",
        made.pem()
    );
    // The key first, so that an existing certificate has one.
    for (path, text) in [(&key, secret.serialize_pem()), (&certificate, text)] {
        write_private(path, text.as_bytes(), true).map_err(|error| {
            let message = format!("{} cannot be written: {error}", path.display());
            Error::new(Code::Storage, message)
                .hint("free up space, or make the data folder writable")
        })?;
    }
    Ok((certificate, key))
}

/// Returns the names and addresses that clients may use for this server.
fn certificate_names(server: &ServerConfig, addresses: &[IpAddr]) -> Vec<String> {
    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let listened = addresses.iter().copied().filter(|ip| !ip.is_unspecified());
    names.extend(listened.chain(way_out()).map(|ip| ip.to_string()));
    names.extend(server.names.iter().cloned());
    names.sort();
    names.dedup();
    names
}

/// Returns the address that other machines on the network see. Connecting a datagram socket sends nothing.
fn way_out() -> Option<IpAddr> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    // An address reserved for documentation.
    socket.connect(("198.51.100.1", 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified())
}

fn is_valid_long_enough(text: &str, today: Date) -> bool {
    let named = text.lines().find_map(|line| line.strip_prefix(NOT_AFTER));
    let until = named.and_then(|until| until.trim().parse::<Date>().ok());
    until.is_some_and(|until| {
        until
            .checked_sub(jiff::Span::new().days(RENEWED_DAYS))
            .is_ok_and(|renewed| today < renewed)
    })
}

#[cfg(test)]
mod tests;
