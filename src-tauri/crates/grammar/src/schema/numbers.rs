//! Numbers and their bounds.

use super::{Fields, SchemaWalk, values::is_within};
use crate::decimal::{DecimalBound, number_grammar};
use serde_json::{Number, Value, json};
use tierbar_core::Error;

/// Multiples that are listed.
const MOST_VALUES: i64 = 256;

impl SchemaWalk<'_> {
    pub(super) fn translate_number(
        &mut self,
        kind: &'static str,
        fields: &Fields,
        at: &str,
    ) -> Result<Value, Error> {
        let low = self.tighter_bound(fields, ("minimum", "exclusiveMinimum"), true, at)?;
        let high = self.tighter_bound(fields, ("maximum", "exclusiveMaximum"), false, at)?;
        let whole = (kind == "integer").then_some(0);
        let mut decimals = whole;
        if let Some(step) = self.number_at(fields, "multipleOf", at)? {
            let limit = DecimalBound::new(&step, false).and_then(|step| step.decimals());
            if let Some(limit) = limit {
                decimals = Some(whole.unwrap_or(limit));
            } else if let Some(values) = multiples_within(&step, fields) {
                if values.is_empty() {
                    return Err(
                        self.wrong(at, "contradicts itself: no multiple is within its bounds")
                    );
                }
                return Ok(self.one_of(values.into_iter().map(Value::from).collect()));
            } else {
                let why = "is supported for powers of ten up to 1, and for integers within two bounds that are close";
                self.refuse(at, "multipleOf", why)?;
            }
        }
        if low.is_none() && high.is_none() && decimals == whole {
            return Ok(json!({"type": kind}));
        }
        match number_grammar(decimals, low.as_ref(), high.as_ref()) {
            Some(grammar) => Ok(self.placeholders.constant(grammar)),
            None => Err(self.wrong(at, "contradicts itself: no number is within its bounds")),
        }
    }

    /// The tighter of two bounds. In older schemas, the exclusive one is a flag of the other.
    fn tighter_bound(
        &self,
        fields: &Fields,
        (inclusive, exclusive): (&'static str, &'static str),
        is_low: bool,
        at: &str,
    ) -> Result<Option<DecimalBound>, Error> {
        let flagged = fields.get(exclusive) == Some(&json!(true));
        let is_flag = fields.get(exclusive).is_some_and(Value::is_boolean);
        let own = self.number_at(fields, inclusive, at)?;
        let other = if is_flag {
            None
        } else {
            self.number_at(fields, exclusive, at)?
        };
        let size = |number: &Number| number.as_f64().unwrap_or_default();
        // As a distance from the other bound.
        let reach = |number: &Number| if is_low { -size(number) } else { size(number) };
        let is_tighter = |one: &Number, other: &Number| reach(one) < reach(other);
        let (key, number, is_exclusive) = match (own, other) {
            (None, None) => return Ok(None),
            (Some(own), Some(other)) if is_tighter(&own, &other) => (inclusive, own, flagged),
            (_, Some(other)) => (exclusive, other, true),
            (Some(own), None) => (inclusive, own, flagged),
        };
        let bound = DecimalBound::new(&number, is_exclusive);
        // Further away than any number that is written.
        let is_far = reach(&number) > 1.0;
        if bound.is_none() && !is_far {
            self.refuse(at, key, "has too many digits, which is not supported")?;
        }
        Ok(bound)
    }

    fn number_at(&self, fields: &Fields, key: &str, at: &str) -> Result<Option<Number>, Error> {
        match fields.get(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(_) => Err(self.wrong(at, &format!("has `{key}` that is not a number"))),
        }
    }
}

/// The multiples of an integer within both bounds; `None` for too many.
fn multiples_within(step: &Number, fields: &Fields) -> Option<Vec<i64>> {
    let step = step.as_i64().filter(|step| *step > 0)?;
    let bound = |keys: [&str; 2]| {
        let mut bounds = keys.iter().filter_map(|key| fields.get(*key)?.as_f64());
        bounds.find(|bound| bound.abs() < 1e15)
    };
    let low = bound(["minimum", "exclusiveMinimum"])?;
    let high = bound(["maximum", "exclusiveMaximum"])?;
    #[expect(clippy::cast_possible_truncation, reason = "they are below 1e15")]
    let (low, high) = (low.floor() as i64, high.ceil() as i64);
    let (first, last) = (low.div_euclid(step), high.div_euclid(step));
    if last - first > MOST_VALUES {
        return None;
    }
    let values = (first..=last).map(|times| times * step);
    let fits = |value: &i64| is_within(&json!(value), fields);
    Some(values.filter(fits).collect())
}
