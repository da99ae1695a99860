//! The folder of conversations that ending workers save: it exists and is within its limit, or it does not exist.

use crate::folder::Folder;
use tierbar_contexts::SwapFolder;
use tierbar_core::config::PolicyConfig;
use tierbar_inference::blocking::blocking;

/// Applies the configuration to the folder.
///
/// Workers save only if the folder exists, so turning the setting off also applies to a loaded worker.
pub(crate) async fn apply(folder: &Folder, policy: &PolicyConfig) {
    let most = policy.conversations();
    let swapped = SwapFolder::new(
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
