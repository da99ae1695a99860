//! Decimal numbers between two bounds, as a grammar in GBNF.

use serde_json::Number;
use std::cmp::Ordering;

/// Doubles tell decimals of so many digits apart.
const MOST_DIGITS: usize = 15;
/// A bound is written out, and no sensible one has more.
const LONGEST: i32 = 40;

/// A bound of a number, as decimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecimalBound {
    negative: bool,
    /// Without zeros in front: empty below 1.
    whole: String,
    /// Without zeros at the end.
    parts: String,
    exclusive: bool,
}

impl DecimalBound {
    /// Returns `None` for more than 40 digits.
    pub(crate) fn new(number: &Number, exclusive: bool) -> Option<Self> {
        let text = number.to_string();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, parts) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{parts}");
        let point = i32::try_from(whole.len()).ok()? + exponent.parse::<i32>().ok()?;
        if !(-LONGEST..=LONGEST).contains(&point) {
            return None;
        }
        let (whole, parts) = match usize::try_from(point) {
            Ok(point) if point <= digits.len() => {
                let (whole, parts) = digits.split_at(point);
                (whole.to_owned(), parts.to_owned())
            }
            Ok(point) => (format!("{digits:0<point$}"), String::new()),
            Err(_) => {
                let zeros = "0".repeat(point.unsigned_abs() as usize);
                (String::new(), zeros + &digits)
            }
        };
        let (whole, parts) = (
            whole.trim_start_matches('0').to_owned(),
            parts.trim_end_matches('0').to_owned(),
        );
        Some(Self {
            negative: negative && !(whole.is_empty() && parts.is_empty()),
            whole,
            parts,
            exclusive,
        })
    }

    /// Returns how many decimals a multiple of this has at most; `None` for what is no power of ten up to 1.
    pub(crate) fn decimals(&self) -> Option<usize> {
        let is_one = self.whole == "1" && self.parts.is_empty();
        let is_part = self.whole.is_empty() && self.parts.trim_start_matches('0') == "1";
        (!self.negative && (is_one || is_part)).then_some(self.parts.len())
    }

    fn edge(&self) -> (&str, &str, bool) {
        (&self.whole, &self.parts, self.exclusive)
    }
}

/// Returns a grammar of the numbers between the bounds, without exponents; `None` if there is none. `decimals`: the most that one
/// may have, if it is limited.
pub(crate) fn number_grammar(
    decimals: Option<usize>,
    low: Option<&DecimalBound>,
    high: Option<&DecimalBound>,
) -> Option<String> {
    let bounds = || low.into_iter().chain(high);
    let decimals = decimals.unwrap_or_else(|| {
        let whole = bounds().map(|bound| bound.whole.len()).max();
        let parts = bounds().map(|bound| bound.parts.len()).max();
        // Two more, so that there is something between two that are close.
        let fewest = parts.map_or(0, |parts| parts + 2);
        fewest.max((MOST_DIGITS - 1).saturating_sub(whole.unwrap_or(0)))
    });
    let mut ways = Vec::new();
    if !high.is_some_and(|high| high.negative) {
        let from = low.filter(|low| !low.negative);
        let from = from.map_or(("", "", false), DecimalBound::edge);
        let to = high.map(DecimalBound::edge);
        ways.extend(magnitude_grammar(decimals, from, to));
    }
    if low.is_none_or(|low| low.negative) {
        // Zero has no sign.
        let from = high.filter(|high| high.negative);
        let from = from.map_or(("", "", true), DecimalBound::edge);
        let below = magnitude_grammar(decimals, from, low.map(DecimalBound::edge));
        ways.extend(below.map(|below| format!("\"-\" ({below})")));
    }
    any_of(&ways)
}

/// What may follow: `more` is never empty, and `ends` is whether nothing may follow.
struct DigitSuffix {
    more: Option<String>,
    ends: bool,
}

/// Digits that a number is at least or at most, as if zeros followed, and whether it may not be equal.
type Edge<'a> = Option<(&'a [u8], bool)>;

/// Numbers without a sign.
fn magnitude_grammar(
    decimals: usize,
    (whole, parts, exclusive): (&str, &str, bool),
    high: Option<(&str, &str, bool)>,
) -> Option<String> {
    let or_zero = |whole: &str| if whole.is_empty() { "0" } else { whole }.to_owned();
    let whole = or_zero(whole);
    let shortest = whole.len();
    let low = whole + parts;
    let high = high.map(|(whole, parts, exclusive)| {
        let whole = or_zero(whole);
        (whole.len(), whole + parts, exclusive)
    });
    let longest = high.as_ref().map_or(shortest, |(length, ..)| *length);
    let mut ways = Vec::new();
    for length in shortest..=longest {
        let first = format!("1{}", "0".repeat(length - 1));
        let from = match length.cmp(&shortest) {
            Ordering::Equal => (low.as_bytes(), exclusive),
            _ => (first.as_bytes(), false),
        };
        let to = high.as_ref().filter(|_| length == longest);
        let to = to.map(|(_, digits, exclusive)| (digits.as_bytes(), *exclusive));
        ways.extend(digits_before_point(length, decimals, Some(from), to).more);
    }
    if high.is_none() && shortest < MOST_DIGITS {
        let longer = format!("[1-9] [0-9]{{{shortest},{}}}", MOST_DIGITS - 1);
        let rest = point_and_digits(decimals, None, None);
        ways.extend(followed_by(&longer, &rest));
    }
    any_of(&ways)
}

/// `length`: the digits that are left before the point.
fn digits_before_point(
    length: usize,
    decimals: usize,
    low: Edge<'_>,
    high: Edge<'_>,
) -> DigitSuffix {
    if length == 0 {
        return point_and_digits(decimals, low, high);
    }
    let more = if low.is_none() && high.is_none() {
        let rest = point_and_digits(decimals, None, None);
        followed_by(&format!("[0-9]{{{length}}}"), &rest)
    } else {
        let free = digits_before_point(length - 1, decimals, None, None);
        next_digit(low, high, &free, &|low, high| {
            digits_before_point(length - 1, decimals, low, high)
        })
    };
    DigitSuffix { more, ends: false }
}

fn point_and_digits(decimals: usize, low: Edge<'_>, high: Edge<'_>) -> DigitSuffix {
    let DigitSuffix { more, ends } = digits_behind_point(decimals, low, high);
    let more = more.map(|more| format!("\".\" ({more})"));
    DigitSuffix { more, ends }
}

/// `most`: the digits that may come behind the point.
fn digits_behind_point(most: usize, low: Edge<'_>, high: Edge<'_>) -> DigitSuffix {
    let is_zero = |digits: &[u8]| digits.iter().all(|digit| *digit == b'0');
    let low = low.filter(|(digits, exclusive)| *exclusive || !is_zero(digits));
    if let Some((_, exclusive)) = high.filter(|(digits, _)| is_zero(digits)) {
        let ends = low.is_none() && !exclusive;
        let more = (ends && most > 0).then(|| "\"0\"".to_owned());
        return DigitSuffix { more, ends };
    }
    let ends = low.is_none();
    let more = match (low, high) {
        _ if most == 0 => None,
        (None, None) => Some(format!("[0-9]{{1,{most}}}")),
        _ => {
            let free = DigitSuffix {
                more: (most > 1).then(|| format!("[0-9]{{1,{}}}", most - 1)),
                ends: true,
            };
            next_digit(low, high, &free, &|low, high| {
                digits_behind_point(most - 1, low, high)
            })
        }
    };
    DigitSuffix { more, ends }
}

/// One digit and what follows it: `free` between the edges, and `rest` on one of them.
fn next_digit(
    low: Edge<'_>,
    high: Edge<'_>,
    free: &DigitSuffix,
    rest: &dyn Fn(Edge<'_>, Edge<'_>) -> DigitSuffix,
) -> Option<String> {
    let (from, to) = (low.map(first_digit), high.map(first_digit));
    let (low, high) = (low.map(without_first_digit), high.map(without_first_digit));
    match (from, to) {
        (Some(from), Some(to)) if from > to => return None,
        (Some(from), Some(to)) if from == to => {
            return followed_by(&digit_range(from, to), &rest(low, high));
        }
        _ => {}
    }
    let mut ways = Vec::new();
    if let Some(from) = from {
        ways.extend(followed_by(&digit_range(from, from), &rest(low, None)));
    }
    let (above, below) = (from.map_or(0, |from| from + 1), to.unwrap_or(10));
    if above < below {
        ways.extend(followed_by(&digit_range(above, below - 1), free));
    }
    if let Some(to) = to {
        ways.extend(followed_by(&digit_range(to, to), &rest(None, high)));
    }
    any_of(&ways)
}

fn first_digit((digits, _): (&[u8], bool)) -> u8 {
    digits.first().map_or(0, |digit| digit - b'0')
}

fn without_first_digit((digits, exclusive): (&[u8], bool)) -> (&[u8], bool) {
    (digits.get(1..).unwrap_or_default(), exclusive)
}

fn digit_range(from: u8, to: u8) -> String {
    if from == to {
        format!("\"{from}\"")
    } else {
        format!("[{from}-{to}]")
    }
}

fn followed_by(digits: &str, rest: &DigitSuffix) -> Option<String> {
    match (&rest.more, rest.ends) {
        (None, false) => None,
        (None, true) => Some(digits.to_owned()),
        (Some(more), true) => Some(format!("{digits} ({more})?")),
        (Some(more), false) => Some(format!("{digits} ({more})")),
    }
}

fn any_of(ways: &[String]) -> Option<String> {
    (!ways.is_empty()).then(|| ways.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_syntax::hir::{Class, Hir, HirKind};
    use serde_json::Value;

    fn bound(text: &str, exclusive: bool) -> DecimalBound {
        let Value::Number(number) = serde_json::from_str(text).unwrap() else {
            panic!("{text}");
        };
        DecimalBound::new(&number, exclusive).unwrap()
    }

    /// The grammar, which has nothing that a regular expression has not.
    fn read(grammar: &str) -> Hir {
        let pattern = grammar.replace("\".\"", "\\.").replace(['"', ' '], "");
        regex_syntax::parse(&pattern).unwrap()
    }

    /// Whether the text begins with a match behind which `then` holds.
    fn begins(hir: &Hir, text: &str, then: &mut dyn FnMut(&str) -> bool) -> bool {
        match hir.kind() {
            HirKind::Empty => then(text),
            HirKind::Literal(literal) => {
                let literal = std::str::from_utf8(&literal.0).unwrap();
                text.strip_prefix(literal).is_some_and(then)
            }
            HirKind::Class(Class::Unicode(class)) => {
                let one = text.chars().next();
                one.is_some_and(|one| {
                    let fits = class
                        .iter()
                        .any(|range| (range.start()..=range.end()).contains(&one));
                    fits && then(&text[1..])
                })
            }
            HirKind::Repetition(repetition) => {
                let most = repetition.max.unwrap();
                repeated(&repetition.sub, repetition.min, most, text, then)
            }
            HirKind::Capture(capture) => begins(&capture.sub, text, then),
            HirKind::Concat(parts) => all(parts, text, then),
            HirKind::Alternation(ways) => ways.iter().any(|way| begins(way, text, then)),
            other => panic!("{other:?}"),
        }
    }

    fn repeated(
        hir: &Hir,
        fewest: u32,
        most: u32,
        text: &str,
        then: &mut dyn FnMut(&str) -> bool,
    ) -> bool {
        let more = most > 0
            && begins(hir, text, &mut |rest| {
                repeated(hir, fewest.saturating_sub(1), most - 1, rest, then)
            });
        more || (fewest == 0 && then(text))
    }

    fn all(parts: &[Hir], text: &str, then: &mut dyn FnMut(&str) -> bool) -> bool {
        match parts {
            [] => then(text),
            [part, rest @ ..] => begins(part, text, &mut |text| all(rest, text, then)),
        }
    }

    fn admits(grammar: &str, text: &str) -> bool {
        begins(&read(grammar), text, &mut str::is_empty)
    }

    /// A number in thousandths, as it is written.
    fn written(thousandths: i64) -> String {
        let (whole, parts) = (thousandths.abs() / 1000, thousandths.abs() % 1000);
        let sign = if thousandths < 0 { "-" } else { "" };
        let text = format!("{sign}{whole}.{parts:03}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        text.to_owned()
    }

    #[test]
    fn a_number_fits_if_it_is_between_the_bounds() {
        let bounds = [
            -12_000, -10_500, -1000, -999, -5, -1, 0, 1, 300, 999, 1000, 1001, 9500, 12_340,
        ];
        let edges: Vec<_> = [None]
            .into_iter()
            .chain(
                bounds
                    .iter()
                    .flat_map(|bound| [Some((*bound, false)), Some((*bound, true))]),
            )
            .collect();
        for low in &edges {
            for high in edges.iter().step_by(3) {
                for decimals in [0, 2, 3] {
                    let edge = |edge: &Option<(i64, bool)>| {
                        edge.map(|(at, exclusive)| bound(&written(at), exclusive))
                    };
                    let (from, to) = (edge(low), edge(high));
                    let grammar = number_grammar(Some(decimals), from.as_ref(), to.as_ref());
                    let hir = grammar.as_deref().map(read);
                    let near = bounds.iter().flat_map(|at| [at - 1, *at, at + 1, at + 100]);
                    for value in near {
                        let text = written(value);
                        let count = text.split_once('.').map_or(0, |(_, parts)| parts.len());
                        let above = low.is_none_or(|(low, exclusive)| {
                            value > low || (value == low && !exclusive)
                        });
                        let below = high.is_none_or(|(high, exclusive)| {
                            value < high || (value == high && !exclusive)
                        });
                        let fits = hir
                            .as_ref()
                            .is_some_and(|hir| begins(hir, &text, &mut str::is_empty));
                        assert_eq!(
                            fits,
                            above && below && count <= decimals,
                            "{text} in {low:?}, {high:?}: {grammar:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_are_written_as_json_has_them() {
        let share =
            number_grammar(None, Some(&bound("0", false)), Some(&bound("1", false))).unwrap();
        for number in ["0", "1", "0.5", "0.25", "1.0", "0.0"] {
            assert!(admits(&share, number), "{number}");
        }
        for other in [
            "", "00", "01", ".5", "0.", "1.5", "-0", "-0.5", "2", "1e0", "10",
        ] {
            assert!(!admits(&share, other), "{other}");
        }
        let below = number_grammar(Some(0), None, Some(&bound("-5", false))).unwrap();
        for (number, fits) in [
            ("-5", true),
            ("-12", true),
            ("-4", false),
            ("-05", false),
            ("5", false),
        ] {
            assert_eq!(admits(&below, number), fits, "{number}");
        }
    }

    #[test]
    fn bounds_are_read_in_each_form() {
        for (text, whole, parts) in [
            ("0", "", ""),
            ("-0.0", "", ""),
            ("1e-7", "", "0000001"),
            ("1.5e3", "1500", ""),
            ("12.50", "12", "5"),
            ("9223372036854775807", "9223372036854775807", ""),
        ] {
            let read = bound(text, false);
            assert_eq!((&*read.whole, &*read.parts), (whole, parts), "{text}");
        }
        let far: Number = serde_json::from_str("1e300").unwrap();
        assert_eq!(DecimalBound::new(&far, false), None);
        for (text, decimals) in [
            ("1", Some(0)),
            ("0.01", Some(2)),
            ("0.25", None),
            ("10", None),
        ] {
            assert_eq!(bound(text, false).decimals(), decimals, "{text}");
        }
    }

    #[test]
    fn nothing_is_between_bounds_that_contradict_each_other() {
        for (low, high, exclusive) in [("5", "3", false), ("1", "1", true), ("-3", "-5", false)] {
            let (low, high) = (bound(low, exclusive), bound(high, exclusive));
            assert_eq!(number_grammar(None, Some(&low), Some(&high)), None);
        }
        let between = (bound("0.2", true), bound("0.8", true));
        assert_eq!(
            number_grammar(Some(0), Some(&between.0), Some(&between.1)),
            None
        );
    }
}
