//! A file over one connection from its start, for servers without ranges. It cannot be resumed.

use super::{
    FileSpec, Phase, Report, disk::Disk, head, rate::RateLimit, source::Trouble, weather::Weather,
};
use crate::web::{Answer, told};
use std::time::Duration;
use tierbar_core::{Code, Error};
use tokio::time::Instant;

const REPORT_EVERY: Duration = Duration::from_millis(200);

/// How many bytes the file has, all of them handed to the disk.
///
/// # Errors
/// Outside what the disk does not take, inside what the server did.
pub(super) async fn fetch(
    mut answer: Answer,
    spec: &FileSpec,
    disk: &Disk,
    rate: &RateLimit,
    report: &Report,
    weather: &mut Weather,
) -> Result<Result<u64, Trouble>, Error> {
    if !answer.is_framed && spec.size.is_none() && spec.sha256.is_none() {
        return Ok(Err(Trouble::Fatal(
            Error::new(
                Code::Corrupt,
                format!(
                    "{} does not tell the file's length: nobody would know whether all of it arrived",
                    told(&answer.url)
                ),
            )
            .hint("Take another source, or one that tells the file's size or sha256."),
        )));
    }
    let blocks = disk.blocks();
    let wanted = answer.content_length.or(spec.size);
    let mut at = 0;
    let mut told_at = Instant::now();
    report.phase(Phase::Receiving);
    loop {
        let bytes = match answer.chunk().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break,
            Err(error) => return Ok(Err(weather.broke_off(at, error))),
        };
        if at == 0
            && let Err(trouble) = head::check_page(&answer, &bytes)
        {
            return Ok(Err(trouble));
        }
        let end = at + bytes.len() as u64;
        if wanted.is_some_and(|wanted| end > wanted) {
            return Ok(Err(head::wrong(&answer, "more bytes than the file has")));
        }
        rate.take(bytes.len()).await;
        if blocks.send((at, bytes)).await.is_err() {
            break;
        }
        if let Some(trouble) = disk.trouble() {
            return Err(trouble);
        }
        at = end;
        if told_at.elapsed() >= REPORT_EVERY {
            told_at = Instant::now();
            report.received(disk.received());
        }
    }
    match wanted {
        Some(wanted) if at < wanted => Ok(Err(head::wrong(
            &answer,
            &format!("{at} bytes, where the file has {wanted}"),
        ))),
        _ => Ok(Ok(at)),
    }
}
