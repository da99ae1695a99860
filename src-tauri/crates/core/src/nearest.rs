//! The known name that an unknown one probably stands for.

/// A name that is less similar (Jaro-Winkler) was not meant.
const SIMILAR: f64 = 0.8;
/// Longer names, in bytes, are not compared: the time grows with the product of both lengths.
const LONGEST: usize = 200;

/// Returns the most similar of these names, in any case; `None` if no name is similar.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if wanted.len() > LONGEST {
        return None;
    }
    let wanted = wanted.to_lowercase();
    let similar = names.into_iter().map(|name| {
        let similarity = strsim::jaro_winkler(&wanted, &name.to_lowercase());
        (similarity, name)
    });
    let (similarity, name) = similar.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (similarity >= SIMILAR).then_some(name)
}

/// Returns a hint that begins with the nearest name, if one is near: `did you mean fast? the tiers are fast, heavy`.
pub fn suggest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    let otherwise = otherwise.into();
    match nearest(wanted, names) {
        Some(name) => format!("did you mean {name}? {otherwise}"),
        None => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_in_any_case() {
        let tiers = ["fast", "primary", "heavy"];
        for (wanted, found) in [
            ("fsat", Some("fast")),
            ("Fast", Some("fast")),
            ("primery", Some("primary")),
            ("heavvy", Some("heavy")),
            ("turbo", None),
            ("", None),
        ] {
            assert_eq!(nearest(wanted, tiers), found, "{wanted}");
        }
        assert_eq!(nearest("fast", []), None);
        assert_eq!(nearest(&"fast".repeat(100), tiers), None);
    }

    #[test]
    fn a_hint_without_a_near_name_is_unchanged() {
        let hint = |wanted| suggest(wanted, ["fast"], "the tiers are fast");
        assert_eq!(hint("fst"), "did you mean fast? the tiers are fast");
        assert_eq!(hint("turbo"), "the tiers are fast");
    }
}
