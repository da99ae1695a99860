//! The outbound HTTP client.

/// Placeholder.
#[derive(Debug)]
pub struct Web;
#[derive(Debug)]
pub struct WebOptions;
