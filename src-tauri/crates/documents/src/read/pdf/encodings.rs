//! What the codes of simple fonts mean (annex D), and Adobe's names of glyphs (its Glyph List For New Fonts).

use crate::text::windows_letter;

/// Codes from 32 on.
const STANDARD: &str = " !\"#$%&’()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_‘abcdefghijklmnopqrstuvwxyz{|}~";
/// Codes from 160 on; a space is none.
const STANDARD_ABOVE: &str = " ¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ –†‡· ¶•‚„”»…‰ ¿ `´ˆ˜¯˘˙¨ ˚¸ ˝˛ˇ—                Æ ª    ŁØŒº     æ   ı  łøœß    ";
/// Codes from 128 on.
const MAC_ABOVE: &str = "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»… ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ";
/// Codes from 32 on.
const SYMBOL: &str = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧ∆ΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_ αβχδεφγηιϕκλµνοπθρστυϖωξψζ{|}∼";
/// Codes from 160 on; a space is none.
const SYMBOL_ABOVE: &str =
    " ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…  ↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇   ∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈   ∑          〉∫⌠ ⌡      ";
/// A name and its code point in each line, sorted.
const GLYPHS: &str = include_str!("glyphs.txt");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Standard,
    Windows,
    Mac,
    Symbol,
}

impl Encoding {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        match name {
            "WinAnsiEncoding" => Some(Self::Windows),
            "MacRomanEncoding" => Some(Self::Mac),
            "StandardEncoding" => Some(Self::Standard),
            _ => None,
        }
    }

    pub(super) fn letter(self, code: u8) -> Option<char> {
        let at = |letters: &str, first: u8| {
            let letter = letters.chars().nth(usize::from(code.checked_sub(first)?));
            letter.filter(|&letter| letter != ' ' || code == 32)
        };
        let plain = (32..127).contains(&code);
        match self {
            Self::Windows => (code >= 32 && code != 127).then(|| windows_letter(code)),
            Self::Mac if plain => Some(char::from(code)),
            Self::Mac if code == 0xca => Some(' '),
            Self::Mac => at(MAC_ABOVE, 128),
            Self::Standard if plain => at(STANDARD, 32),
            Self::Standard => at(STANDARD_ABOVE, 160),
            Self::Symbol if plain => at(SYMBOL, 32),
            Self::Symbol => at(SYMBOL_ABOVE, 160),
        }
    }
}

/// Returns the letters that a glyph's name stands for.
pub(super) fn glyph(name: &str) -> Option<String> {
    // `a.alt` is a form of `a`, and `f_i` one glyph for two letters.
    let name = name.split('.').next().filter(|name| !name.is_empty())?;
    if name.contains('_') {
        let parts: Option<Vec<_>> = name.split('_').map(glyph).collect();
        return parts.map(|parts| parts.concat());
    }
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next())
        && letter.is_ascii_alphabetic()
    {
        return Some(letter.to_string());
    }
    if let Some(found) = listed(name) {
        return Some(found.to_string());
    }
    let hex = name
        .strip_prefix("uni")
        .or_else(|| name.strip_prefix('u'))?;
    if !hex.is_ascii() || hex.len() < 4 {
        return None;
    }
    let of = |hex: &str| char::from_u32(u32::from_str_radix(hex, 16).ok()?);
    if name.starts_with("uni") {
        let units = (0..hex.len() / 4).map(|at| of(&hex[at * 4..at * 4 + 4]));
        return units.collect();
    }
    of(hex.get(..hex.len().min(6))?).map(String::from)
}

fn listed(name: &str) -> Option<char> {
    let (mut low, mut high) = (0, GLYPHS.len());
    // By halves, over bytes: each step goes back to its line's beginning.
    while low < high {
        let middle = usize::midpoint(low, high);
        let begun = GLYPHS[..middle].rfind('\n').map_or(0, |at| at + 1);
        let line = GLYPHS[begun..].lines().next()?;
        let (known, code) = line.split_once(' ')?;
        match known.cmp(name) {
            std::cmp::Ordering::Equal => {
                return char::from_u32(u32::from_str_radix(code, 16).ok()?);
            }
            std::cmp::Ordering::Less => low = begun + line.len() + 1,
            std::cmp::Ordering::Greater => high = begun,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_have_letters() {
        assert_eq!(Encoding::Windows.letter(0x96), Some('–'));
        assert_eq!(Encoding::Mac.letter(0x8a), Some('ä'));
        assert_eq!(Encoding::Mac.letter(0xde), Some('ﬁ'));
        assert_eq!(Encoding::Standard.letter(0x27), Some('’'));
        assert_eq!(Encoding::Standard.letter(0xae), Some('ﬁ'));
        assert_eq!(Encoding::Standard.letter(0xfb), Some('ß'));
        assert_eq!(Encoding::Standard.letter(0xb0), None);
        assert_eq!(Encoding::Symbol.letter(0x61), Some('α'));
        assert_eq!(Encoding::Symbol.letter(0xe5), Some('∑'));
        for (name, letters) in [
            ("A", "A"),
            ("zero", "0"),
            ("germandbls", "ß"),
            ("f_f_i", "ffi"),
            ("a.alt", "a"),
            ("uni00410042", "AB"),
            ("u1F600", "😀"),
            ("summation", "∑"),
            ("ffi", "ﬃ"),
        ] {
            assert_eq!(glyph(name).as_deref(), Some(letters), "{name}");
        }
        assert_eq!(glyph("g123"), None);
        assert_eq!(glyph(".notdef"), None);
        let lines: Vec<_> = GLYPHS.lines().collect();
        assert!(lines.is_sorted_by_key(|line| line.split(' ').next()));
        for line in lines {
            assert!(listed(line.split(' ').next().unwrap()).is_some(), "{line}");
        }
    }
}
