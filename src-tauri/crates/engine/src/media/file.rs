//! Image and sound files from clients: their kind and limits.

use crate::bad;
use crate::llama::{Medium, Projector};
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use std::{io::Cursor, ops::RangeInclusive};
use tierbar_contexts::hash;
use tierbar_core::Error;

/// The largest file in bytes; a JPEG of twenty megapixels has half of that.
pub(super) const LARGEST: usize = 16 << 20;
/// The most pixels in a request. Photos of current phones have up to 48 million.
pub(super) const MOST_PIXELS: u64 = 50_000_000;
/// The highest aspect ratio. A narrower image has more patches than its pixels suggest, because llama.cpp extends its short
/// side to one patch (`calc_size_preserved_ratio` in `tools/mtmd/mtmd-image.cpp`).
const THINNEST: u32 = 64;
/// The most memory for decoding, in bytes.
const MOST_MEMORY: u64 = 256 << 20;
const LARGEST_MP3: usize = 4 << 20;
const WAV_RATES: RangeInclusive<u32> = 4000..=192_000;

/// Decodes an image within the remaining pixels, and subtracts its own. Not by the projector's library, which does not
/// limit a file that unpacks endlessly.
pub(super) fn decode_image(file: &[u8], left: &mut u64) -> Result<Medium, Error> {
    let format = image::guess_format(file).ok().filter(|format| {
        matches!(
            format,
            ImageFormat::Png
                | ImageFormat::Jpeg
                | ImageFormat::Gif
                | ImageFormat::Bmp
                | ImageFormat::WebP
        )
    });
    let Some(format) = format else {
        return Err(
            bad("an image has an unknown format").hint("send PNG, JPEG, GIF, BMP or WebP files")
        );
    };
    let broken = |error| bad(format!("an image cannot be read: {error}"));
    let mut reader = ImageReader::with_format(Cursor::new(file), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    *left = left.checked_sub(pixels).ok_or_else(|| {
        bad(format!(
            "an image has {width} × {height} pixels; the images of a request may have {MOST_PIXELS} together"
        ))
        .hint("send smaller images; models see a few megapixels at most")
    })?;
    let (short, long) = (width.min(height), width.max(height));
    if long / short.max(1) >= THINNEST {
        return Err(bad(format!(
            "an image of {width} × {height} pixels is too narrow; one side may be {THINNEST} times the other"
        ))
        .hint("split it into several images"));
    }
    let orientation = decoder.orientation().map_err(broken)?;
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(broken)?;
    decoded.apply_orientation(orientation);
    let decoded = decoded.into_rgb8();
    let (width, height) = decoded.dimensions();
    Medium::picture(width, height, decoded.as_raw(), &hash(file))
        .ok_or_else(|| bad("an image has no pixels"))
}

pub(super) fn decode_sound(projector: &Projector, file: &[u8]) -> Result<Medium, Error> {
    let wav = file.starts_with(b"RIFF") && file.get(8..12) == Some(b"WAVE");
    let mp3 =
        file.starts_with(b"ID3") || matches!(file, [0xff, second, ..] if second & 0xe0 == 0xe0);
    if file.len() < 12 || !(wav || mp3) {
        return Err(bad("an audio file has an unknown format").hint("send WAV or MP3 files"));
    }
    check_length(file, wav)?;
    let medium = projector.sound(file, &hash(file));
    medium.ok_or_else(|| bad("an audio file cannot be read: it is truncated or damaged"))
}

/// Checks the length: a file of a few bytes may last for days, and it is decoded whole, at the projector's rate.
fn check_length(file: &[u8], wav: bool) -> Result<(), Error> {
    if !wav {
        // At the lowest bit rate of MP3, this is 70 minutes.
        return if file.len() <= LARGEST_MP3 {
            Ok(())
        } else {
            let most = LARGEST_MP3 >> 20;
            Err(bad(format!("an MP3 file is larger than {most} MiB"))
                .hint("split it into shorter files"))
        };
    }
    // All WAV writers put the chunk `fmt ` first; its byte 4 has the rate.
    let rate = file
        .windows(4)
        .take(4096)
        .position(|bytes| bytes == b"fmt ")
        .and_then(|at| file.get(at + 12..at + 16)?.try_into().ok())
        .map(u32::from_le_bytes);
    match rate {
        Some(rate) if WAV_RATES.contains(&rate) => Ok(()),
        Some(rate) => {
            Err(bad(format!("a WAV file has {rate} samples per second"))
                .hint("send 8,000 to 48,000"))
        }
        None => Err(bad(
            "an audio file cannot be read: it is truncated or damaged",
        )),
    }
}
