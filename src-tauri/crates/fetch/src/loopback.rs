//! The way to our own API, on this machine.

/// For clients of our own servers: no proxy stands between us and our own machine.
pub fn loopback() -> reqwest::ClientBuilder {
    client().no_proxy()
}

/// For clients with rules of their own. To be used in place of reqwest's own builder, which panics where nobody has named the
/// process's TLS library yet.
pub fn client() -> reqwest::ClientBuilder {
    // Fails only if there is one already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}
