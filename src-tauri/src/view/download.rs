//! The menu's items for downloads.

use super::{command::Command, item::Item, truncate};
use crate::words::{self, Word};
use tierbar_core::download::{DownloadState, DownloadStatus};

/// The maximum width of a file's name, in characters, which leaves room for the figures.
const NAME: usize = 22;

/// The most downloads that the menu lists.
const MOST: usize = 4;

/// Returns an item for each download in progress, such as `Downloading gemma-4-E4B… 43 % · 62 MB/s · 1 min left`.
pub(super) fn items(downloads: &[DownloadStatus]) -> Vec<Item> {
    let mut under_way = downloads
        .iter()
        .filter(|download| download.state.is_under_way());
    let shown = under_way.by_ref().take(MOST).map(|download| {
        let command = Command::Download(download.id.clone());
        Item::action(command, render_download(download))
    });
    let mut items: Vec<_> = shown.collect();
    match under_way.count() {
        0 => {}
        more => {
            let text = Word::More.with(&[&more.to_string()]);
            items.push(Item::text("downloads", text));
        }
    }
    items
}

fn render_download(download: &DownloadStatus) -> String {
    let verb = match download.state {
        DownloadState::Verifying => Word::Verifying,
        _ => Word::Downloading,
    };
    let percent = download.percent().map(|percent| format!(" {percent} %"));
    let file = &download.file;
    let name = shorten_name(file.strip_suffix(".gguf").unwrap_or(file));
    let mut parts = vec![verb.with(&[&name, &percent.unwrap_or_default()])];
    match download.state {
        DownloadState::Queued => parts.push(Word::Queued.into()),
        DownloadState::Waiting => {
            parts.push(
                download
                    .reason
                    .clone()
                    .unwrap_or_else(|| Word::Waiting.into()),
            );
        }
        DownloadState::Downloading if download.bytes_per_second > 0 => {
            parts.push(render_rate(download.bytes_per_second));
            parts.extend(download.eta_seconds.map(render_time_left));
        }
        _ => {}
    }
    truncate(&parts.join(" · "))
}

fn shorten_name(name: &str) -> String {
    name.chars().take(NAME).collect()
}

/// Formats a rate. A MB is 10⁶ bytes, as networks count.
fn render_rate(bytes_per_second: u64) -> String {
    match bytes_per_second {
        10_000_000.. => {
            Word::MegabytesPerSecond.with(&[&(bytes_per_second / 1_000_000).to_string()])
        }
        1_000_000.. => {
            let tenths = bytes_per_second / 100_000;
            let rate = words::figure(&format!("{}.{}", tenths / 10, tenths % 10));
            Word::MegabytesPerSecond.with(&[&rate])
        }
        _ => Word::KilobytesPerSecond.with(&[&(bytes_per_second / 1000).to_string()]),
    }
}

fn render_time_left(seconds: u64) -> String {
    match seconds {
        0..60 => Word::LessThanAMinuteLeft.into(),
        60..5400 => Word::MinutesLeft.with(&[&seconds.div_ceil(60).to_string()]),
        _ => Word::HoursLeft.with(&[&seconds.div_ceil(3600).to_string()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::download::Priority;

    fn download(state: DownloadState) -> DownloadStatus {
        DownloadStatus {
            id: "1".to_owned(),
            reference: "unsloth/gemma-4-E4B-it-GGUF:Q4_K_M".to_owned(),
            file: "gemma-4-E4B.gguf".to_owned(),
            files: Vec::new(),
            state,
            priority: Priority::Normal,
            received_bytes: 430,
            total_bytes: Some(1000),
            bytes_per_second: 62_914_560,
            eta_seconds: Some(60),
            reason: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn the_line_shows_name_progress_rate_and_time_left() {
        let running = download(DownloadState::Downloading);
        assert_eq!(
            render_download(&running),
            "Downloading gemma-4-E4B… 43 % · 62 MB/s · 1 min left"
        );
        let slow = DownloadStatus {
            file: format!("{}.gguf", "n".repeat(80)),
            bytes_per_second: 1_250_000,
            eta_seconds: Some(8000),
            ..running.clone()
        };
        assert_eq!(
            render_download(&slow),
            format!(
                "Downloading {}… 43 % · 1.2 MB/s · 3 h left",
                "n".repeat(NAME)
            )
        );
        let unknown = DownloadStatus {
            total_bytes: None,
            bytes_per_second: 4000,
            eta_seconds: None,
            ..running
        };
        assert_eq!(
            render_download(&unknown),
            "Downloading gemma-4-E4B… · 4 kB/s"
        );
        assert_eq!(
            render_download(&download(DownloadState::Verifying)),
            "Verifying gemma-4-E4B… 43 %"
        );
        let waiting = DownloadStatus {
            reason: Some("no network".to_owned()),
            ..download(DownloadState::Waiting)
        };
        assert_eq!(
            render_download(&waiting),
            "Downloading gemma-4-E4B… 43 % · no network"
        );
    }

    #[test]
    fn only_downloads_in_progress_are_listed_and_not_all() {
        use DownloadState::{Done, Downloading, Failed, Paused};
        for state in [Done, Failed, Paused] {
            assert_eq!(items(&[download(state)]), [], "{state:?}");
        }
        let many: Vec<_> = (0..MOST + 2).map(|_| download(Downloading)).collect();
        let items = items(&many);
        assert_eq!(items.len(), MOST + 1);
        assert_eq!(items[MOST], Item::text("downloads", "2 more"));
    }
}
