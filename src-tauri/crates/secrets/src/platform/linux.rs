use crate::Store;
use std::sync::Arc;

/// None: a secret service is not there on servers and in tests, and asks for a password where it is.
pub(crate) fn keychain() -> Option<Arc<dyn Store>> {
    None
}
