//! The tray's line about downloads.

use super::truncate;
use tierbar_core::download::{DownloadState, DownloadStatus};

/// The maximum width of a file's name, in characters, which leaves room for the figures.
const NAME: usize = 22;

/// Describes the first download in progress, such as `Downloading gemma-4-E4B… 43 % · 62 MB/s · 1 min left`, and how
/// many more there are.
pub(super) fn line(downloads: &[DownloadStatus]) -> Option<String> {
    let mut under_way = downloads
        .iter()
        .filter(|download| download.state.is_under_way());
    let first = under_way.next()?;
    let mut parts = Vec::new();
    let verb = match first.state {
        DownloadState::Verifying => "Verifying",
        _ => "Downloading",
    };
    let percent = first.total_bytes.filter(|&total| total > 0).map(|total| {
        format!(
            " {} %",
            (u128::from(first.received_bytes) * 100 / u128::from(total))
        )
    });
    let name = first.file.strip_suffix(".gguf").unwrap_or(&first.file);
    parts.push(format!(
        "{verb} {}…{}",
        cut(name),
        percent.unwrap_or_default()
    ));
    match first.state {
        DownloadState::Queued => parts.push("queued".to_owned()),
        DownloadState::Waiting => {
            parts.push(first.reason.clone().unwrap_or_else(|| "waiting".to_owned()));
        }
        DownloadState::Downloading if first.bytes_per_second > 0 => {
            parts.push(rate(first.bytes_per_second));
            parts.extend(first.eta_seconds.map(left));
        }
        _ => {}
    }
    match under_way.count() {
        0 => {}
        more => parts.push(format!("{more} more")),
    }
    Some(truncate(&parts.join(" · ")))
}

fn cut(name: &str) -> String {
    name.chars().take(NAME).collect()
}

/// Formats a rate. A MB is 10⁶ bytes, as networks count.
fn rate(bytes_per_second: u64) -> String {
    match bytes_per_second {
        10_000_000.. => format!("{} MB/s", bytes_per_second / 1_000_000),
        1_000_000.. => format!(
            "{}.{} MB/s",
            bytes_per_second / 1_000_000,
            bytes_per_second / 100_000 % 10
        ),
        _ => format!("{} kB/s", bytes_per_second / 1000),
    }
}

fn left(seconds: u64) -> String {
    match seconds {
        0..60 => "< 1 min left".to_owned(),
        60..5400 => format!("{} min left", seconds.div_ceil(60)),
        _ => format!("{} h left", seconds.div_ceil(3600)),
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
            line(std::slice::from_ref(&running)).unwrap(),
            "Downloading gemma-4-E4B… 43 % · 62 MB/s · 1 min left"
        );
        let slow = DownloadStatus {
            file: format!("{}.gguf", "n".repeat(80)),
            bytes_per_second: 1_250_000,
            eta_seconds: Some(8000),
            ..running.clone()
        };
        assert_eq!(
            line(&[slow]).unwrap(),
            format!(
                "Downloading {}… 43 % · 1.2 MB/s · 3 h left",
                "n".repeat(NAME)
            )
        );
        let unknown = DownloadStatus {
            total_bytes: None,
            bytes_per_second: 4000,
            eta_seconds: None,
            ..running.clone()
        };
        assert_eq!(
            line(&[unknown, running]).unwrap(),
            "Downloading gemma-4-E4B… · 4 kB/s · 1 more"
        );
        assert_eq!(
            line(&[download(DownloadState::Verifying)]).unwrap(),
            "Verifying gemma-4-E4B… 43 %"
        );
    }

    #[test]
    fn a_stopped_download_has_no_line_and_a_waiting_one_a_reason() {
        use DownloadState::{Done, Failed, Paused, Waiting};
        for state in [Done, Failed, Paused] {
            assert_eq!(line(&[download(state)]), None, "{state:?}");
        }
        let waiting = DownloadStatus {
            reason: Some("no network".to_owned()),
            ..download(Waiting)
        };
        assert_eq!(
            line(&[download(Paused), waiting]).unwrap(),
            "Downloading gemma-4-E4B… 43 % · no network"
        );
    }
}
