//! The transfer encodings of mail (RFC 2045, 6), read past what is wrong in them.

use std::borrow::Cow;

/// Returns the bytes of a part in an encoding, which is named by its header.
pub(super) fn decode<'a>(raw: &'a [u8], encoding: &str) -> Cow<'a, [u8]> {
    let encoding = encoding.trim().to_ascii_lowercase();
    if encoding.starts_with("base64") {
        return Cow::Owned(base64(raw));
    }
    match encoding.as_str() {
        "quoted-printable" => Cow::Owned(quoted_printable(raw)),
        "x-uuencode" | "uuencode" | "x-uue" => Cow::Owned(uuencoded(raw)),
        _ => Cow::Borrowed(raw),
    }
}

/// An equals sign that begins no code stands for itself.
fn quoted_printable(raw: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'=' {
            decoded.push(byte);
            continue;
        }
        let blanks = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r');
        let spaces = behind.iter().take_while(blanks).count();
        if behind.get(spaces) == Some(&b'\n') {
            rest = &behind[spaces + 1..];
        } else if let [one, two, behind @ ..] = behind
            && let (Some(one), Some(two)) = (hexadecimal(*one), hexadecimal(*two))
        {
            decoded.push(one << 4 | two);
            rest = behind;
        } else {
            decoded.push(byte);
        }
    }
    decoded
}

fn hexadecimal(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

/// Other signs are skipped. What mailing lists append without encoding it stays: it begins behind the last line, which is shorter than the
/// first or has padding.
fn base64(raw: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(raw.len() / 4 * 3);
    let (mut bits, mut count, mut longest, mut is_last) = (0_u32, 0, 0, false);
    let mut rest = raw;
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n');
        let (line, behind) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        let signs = line.trim_ascii();
        if is_last
            && !signs
                .iter()
                .all(|&sign| sign == b'=' || six_bits(sign).is_some())
        {
            decoded.push(b'\n');
            decoded.extend(rest);
            break;
        }
        for &sign in signs {
            if let Some(six) = six_bits(sign) {
                bits = bits << 6 | six;
                count += 6;
                if count >= 8 {
                    count -= 8;
                    decoded.extend_from_slice(&(bits >> count).to_le_bytes()[..1]);
                }
            } else if sign == b'=' {
                count = 0;
            }
        }
        is_last |= !signs.is_empty() && (signs.len() < longest || signs.ends_with(b"="));
        longest = longest.max(signs.len());
        rest = behind;
    }
    decoded
}

fn six_bits(sign: u8) -> Option<u32> {
    Some(match sign {
        b'A'..=b'Z' => u32::from(sign - b'A'),
        b'a'..=b'z' => u32::from(sign - b'a') + 26,
        b'0'..=b'9' => u32::from(sign - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// Lines between `begin` and `end`, each with its length (POSIX, `uuencode`).
fn uuencoded(raw: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(raw.len() / 4 * 3);
    let lines = raw.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    let lines = lines
        .skip_while(|line| !line.starts_with(b"begin "))
        .skip(1);
    for line in lines.take_while(|line| *line != b"end") {
        let Some((&length, signs)) = line.split_first() else {
            continue;
        };
        let six = |sign: &u8| u32::from(sign.wrapping_sub(32) & 63);
        let before = decoded.len();
        for four in signs.chunks(4) {
            let bits = (0..4).fold(0, |bits, at| bits << 6 | four.get(at).map_or(0, six));
            decoded.extend_from_slice(&bits.to_be_bytes()[1..]);
        }
        decoded.truncate(before + usize::from(length.wrapping_sub(32) & 63));
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(raw: &str, encoding: &str) -> String {
        String::from_utf8(decode(raw.as_bytes(), encoding).into_owned()).unwrap()
    }

    #[test]
    fn what_is_wrong_in_an_encoding_costs_nothing_else() {
        for (raw, encoding, text) in [
            ("a=3D\"b\"=20=\n c", "Quoted-Printable", "a=\"b\"  c"),
            (
                "href=\"x\" =C3=B6 = \nend=",
                "quoted-printable",
                "href=\"x\" ö end=",
            ),
            ("SGVsbG8s\nIHdvcmxk\n", "base64", "Hello, world"),
            ("SGVs!bG8s\r\n IHdvcm xk", " BASE64; ", "Hello, world"),
            ("SGVsbG8=IHdvcmxk", "base64", "Hello world"),
            (
                "SGVsbG8s\nIQ==\n\n____\nA list, Reg",
                "base64",
                "Hello,!\n____\nA list, Reg",
            ),
            ("SGVsbG8s\nIHdv\n--\nBob", "base64", "Hello, wo\n--\nBob"),
            (
                "begin 644 a\n,2&5L;&\\L('=O<FQD\n`\nend\n",
                "x-uuencode",
                "Hello, world",
            ),
            ("=41 QUE=", "8bit", "=41 QUE="),
        ] {
            assert_eq!(read(raw, encoding), text, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded(raw in prop::collection::vec(any::<u8>(), 0..60), lines in "[ -~\n=]{0,80}") {
            for encoding in ["base64", "quoted-printable", "uuencode"] {
                for raw in [raw.as_slice(), lines.as_bytes()] {
                    prop_assert!(decode(raw, encoding).len() <= raw.len() + 1);
                }
            }
        }
    }
}
