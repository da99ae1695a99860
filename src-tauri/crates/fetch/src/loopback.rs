//! The web clients of this crate, and the way to our own API, on this machine.

use crate::web::root_cause;
use reqwest::{Client, ClientBuilder, redirect::Policy};
use std::time::Duration;
use tierbar_core::{Code, Error};

/// For clients of our own servers: no proxy stands between us and our own machine.
pub fn loopback() -> reqwest::ClientBuilder {
    client().no_proxy()
}

/// For clients with rules of their own. To be used in place of reqwest's own builder, which panics before the process's TLS
/// library is set.
pub fn client() -> reqwest::ClientBuilder {
    // Fails only if there is one already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// For a client that sends to whom it is told and nowhere else: no redirects, no referer, no second try.
pub(crate) fn strict_client(connect: Duration) -> ClientBuilder {
    client()
        .user_agent(concat!("Tierbar/", env!("CARGO_PKG_VERSION")))
        .http1_only()
        .redirect(Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .connect_timeout(connect)
}

/// # Errors
/// [`Code::Internal`] if the system gives no TLS roots.
pub(crate) fn build_client(builder: ClientBuilder) -> Result<Client, Error> {
    builder.build().map_err(|error| {
        let why = root_cause(&error);
        Error::new(
            Code::Internal,
            format!("cannot create the web client: {why}"),
        )
    })
}
