//! Downloads a file over one connection, from a server without ranges. Such a download cannot be resumed.

use super::{
    FileSpec, Phase, Report, backoff::Backoff, disk::Disk, head, rate::RateLimit, source::Trouble,
};
use crate::web::{Answer, display_url};
use std::time::Duration;
use tierbar_core::{Code, Error};
use tokio::time::Instant;

const REPORT_EVERY: Duration = Duration::from_millis(200);

/// Hands all bytes of the file to the disk and returns their number.
///
/// # Errors
/// The outer error is the disk's, the inner one the server's.
pub(super) async fn fetch(
    mut answer: Answer,
    spec: &FileSpec,
    disk: &Disk,
    rate: &RateLimit,
    report: &Report,
    backoff: &mut Backoff,
) -> Result<Result<u64, Trouble>, Error> {
    if !answer.is_framed && spec.size.is_none() && spec.sha256.is_none() {
        let from = display_url(&answer.url);
        let message =
            format!("{from} sends no length, so an incomplete download could not be detected");
        return Ok(Err(Trouble::Fatal(
            Error::new(Code::Corrupt, message)
                .hint("download from a source that gives the file's size or sha256"),
        )));
    }
    let blocks = disk.blocks();
    let wanted = answer.content_length.or(spec.size);
    let mut at = 0;
    let mut reported_at = Instant::now();
    report.phase(Phase::Receiving);
    loop {
        let bytes = match answer.chunk().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break,
            Err(error) => return Ok(Err(backoff.after_broken_stream(at, error))),
        };
        if at == 0
            && let Err(trouble) = head::check_page(&answer, &bytes)
        {
            return Ok(Err(trouble));
        }
        let end = at + bytes.len() as u64;
        if wanted.is_some_and(|wanted| end > wanted) {
            return Ok(Err(head::invalid_answer(
                &answer,
                "more bytes than the file has",
            )));
        }
        rate.take(bytes.len()).await;
        if blocks.send((at, bytes)).await.is_err() {
            break;
        }
        if let Some(trouble) = disk.trouble() {
            return Err(trouble);
        }
        at = end;
        if reported_at.elapsed() >= REPORT_EVERY {
            reported_at = Instant::now();
            report.received(disk.received());
        }
    }
    match wanted {
        Some(wanted) if at < wanted => Ok(Err(head::invalid_answer(
            &answer,
            &format!("{at} bytes instead of {wanted}"),
        ))),
        _ => Ok(Ok(at)),
    }
}
