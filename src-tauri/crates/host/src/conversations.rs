//! The folder of conversations that workers keep when they are ended: there, and within its bound, or gone.

use crate::{blocking::blocking, folder::Folder};
use tierbar_contexts::Swapped;
use tierbar_core::config::PolicyConfig;

/// Makes the folder what the configuration says.
///
/// Workers write where it is, and nowhere if it is not: so one that was loaded before the switch was turned off keeps nothing.
pub(crate) async fn apply(folder: &Folder, policy: &PolicyConfig) {
    let most = policy.conversations();
    let swapped = Swapped::new(
        folder.conversations(),
        u64::from(most.unwrap_or_default()) << 20,
    );
    let apply = move || match most {
        Some(_) => swapped.open(),
        None => swapped.close(),
    };
    if let Err(error) = blocking("the folder of conversations", apply).await {
        tracing::warn!("{}", error.message);
    }
}
