//! Which layers look back only a window.

use super::recurrent::LayerKind;
use crate::{
    fault::{Fault, invalid},
    keys::HeaderKeys,
};

/// How an architecture's layers alternate when the file does not list them: all but one in `period` slide.
struct SlidingPattern {
    period: u32,
    /// The one that does not slide is the first of its period, else the last.
    full_first: bool,
}

/// The window in tokens and, per layer, whether it slides. 0 and none for architectures without windows, or whose
/// windows llama.cpp does not use.
pub(super) fn layers(
    keys: &HeaderKeys,
    layers: u32,
    recurrent: &[LayerKind],
) -> Result<(u32, Vec<bool>), Fault> {
    let (window, rhythm) = match pattern_of_architecture(keys, layers)? {
        None | Some((0, _)) => return Ok((0, vec![false; layers as usize])),
        Some(pattern) => pattern,
    };
    if matches!(keys.architecture, "lfm2" | "lfm2moe") {
        let sliding = recurrent.iter().map(|layer| !layer.without_attention());
        return Ok((window, sliding.collect()));
    }
    let sliding = match (keys.list("attention.sliding_window_pattern"), rhythm) {
        // As llama.cpp reads a list that is too short: the rest does not slide.
        (Some(listed), _) => {
            let listed = listed
                .iter()
                .map(|&slides| slides != 0)
                .chain(std::iter::repeat(false));
            listed.take(layers as usize).collect()
        }
        (_, Some(SlidingPattern { period, full_first })) => {
            let period = keys
                .number("attention.sliding_window_pattern")?
                .unwrap_or(period);
            let slides = |layer: u32| match layer.checked_rem(period) {
                None => true,
                Some(place) if full_first => place != 0,
                Some(place) => place < period - 1,
            };
            (0..layers).map(slides).collect()
        }
        _ => {
            let key = "attention.sliding_window_pattern";
            return invalid(format!(
                "its header has no {}.{key} that lists its layers",
                keys.architecture
            ));
        }
    };
    Ok((window, sliding))
}

/// The window and, unless the file must list its layers, the rhythm.
fn pattern_of_architecture(
    keys: &HeaderKeys,
    layers: u32,
) -> Result<Option<(u32, Option<SlidingPattern>)>, Fault> {
    let window = keys.number("attention.sliding_window")?;
    let pattern = |period, full_first| Some(SlidingPattern { period, full_first });
    let (first, last) = (
        |period| pattern(period, true),
        |period| pattern(period, false),
    );
    Ok(Some(match keys.architecture {
        "gemma2" => (window.unwrap_or(4096), last(2)),
        "gemma3" => (window.unwrap_or(0), last(6)),
        "gemma3n" => (keys.required("attention.sliding_window")?, last(5)),
        "gpt-oss" => (keys.required("attention.sliding_window")?, last(2)),
        "plamo3" => (window.unwrap_or(0), last(8)),
        "cohere2" | "exaone-moe" | "muse-glimmer" => {
            (keys.required("attention.sliding_window")?, last(4))
        }
        // Only the 32B has windows.
        "exaone4" if layers == 64 => (window.unwrap_or(4096), last(4)),
        "olmo2" | "afmoe" | "mellum" => (window.unwrap_or(0), last(4)),
        "cohere2moe" => (keys.required("attention.sliding_window")?, first(4)),
        "laguna" => (window.unwrap_or(0), first(4)),
        // Any window but 0 means the architecture's own.
        "llama4" => (if window == Some(0) { 0 } else { 8192 }, last(4)),
        "smallthinker" => (if window.unwrap_or(0) > 0 { 4096 } else { 0 }, first(4)),
        "gemma4" | "granite_swa" | "maple" | "mimo2" | "spark2_5" | "step35" => {
            (keys.required("attention.sliding_window")?, None)
        }
        "lfm2" | "lfm2moe" => (window.unwrap_or(0), None),
        _ => return Ok(None),
    }))
}
