//! Streams, unpacked within bounds (7.4).

use flate2::read::ZlibDecoder;
use hayro_syntax::{
    Filter,
    object::{Array, Dict, MaybeRef, Stream},
    page::Page,
};
use std::{borrow::Cow, io::Read};

/// The most bytes that the streams of a page unpack to: far more than the text of any page.
const LONGEST: usize = 64 << 20;

/// Returns what a page draws: its streams, as one.
pub(super) fn page_content(page: &Page<'_>, is_cut: &mut bool) -> Vec<u8> {
    let content = page.raw();
    if let Some(stream) = content.get::<Stream<'_>>("Contents") {
        return unpack(&stream, is_cut).into_owned();
    }
    let mut whole = Vec::new();
    let streams = content.get::<Array<'_>>("Contents");
    for item in streams.iter().flat_map(Array::raw_iter) {
        if let MaybeRef::Ref(id) = item
            && let Some(stream) = page.xref().get::<Stream<'_>>(id.into())
        {
            whole.extend_from_slice(&unpack(&stream, is_cut));
            whole.push(b'\n');
        }
        if whole.len() > LONGEST {
            *is_cut = true;
            return Vec::new();
        }
    }
    whole
}

/// Returns the bytes of a stream that is no picture. Of a damaged one, those before the damage; none if there are too many.
pub(super) fn unpack<'a>(stream: &Stream<'a>, is_cut: &mut bool) -> Cow<'a, [u8]> {
    let bytes = inflate(stream).unwrap_or_else(|| stream.decoded_data().unwrap_or_default());
    match bytes.len() > LONGEST {
        true => {
            *is_cut = true;
            Cow::default()
        }
        false => bytes,
    }
}

/// The usual way to pack, which alone makes gigabytes of a small file: not more than the bound is unpacked.
fn inflate<'a>(stream: &Stream<'a>) -> Option<Cow<'a, [u8]>> {
    let is_plain = stream.filters().as_slice() == [Filter::FlateDecode]
        && stream.dict().get::<Dict<'_>>("DecodeParms").is_none();
    if !is_plain {
        return None;
    }
    let mut unpacked = Vec::new();
    let ended = ZlibDecoder::new(&*stream.raw_data())
        .take(LONGEST as u64 + 1)
        .read_to_end(&mut unpacked);
    (ended.is_ok() || !unpacked.is_empty()).then_some(Cow::Owned(unpacked))
}

/// Returns the bytes of a picture that is a JPEG file with nothing packed around it.
pub(super) fn jpeg<'a>(picture: &Stream<'a>) -> Option<Cow<'a, [u8]>> {
    let is_plain = picture.filters().as_slice() == [Filter::DctDecode];
    let bytes = is_plain.then(|| picture.raw_data())?;
    bytes.starts_with(b"\xff\xd8").then_some(bytes)
}
