//! One ranking out of several.

use std::collections::HashMap;

/// Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): each list gives its n-th item 1 / (10 + n). The paper has 60, for
/// more and better rankings; of two, the first items must count for more (`tests/eval/questions.jsonl`, `dev`).
const K: f32 = 10.0;

/// What a ranking by words counts beside one by meaning. Of the questions in `dev`, 0.4 to 0.7 find 63 of 77, and 1.0 finds 60: questions
/// often have other words than their answers, and then many passages share more of them.
const WORDS: f32 = 0.5;

/// The first by words has a place up to here at the latest: a search for a number or a name means its passage.
const FIRST_BY_WORDS: usize = 3;

/// Fuses a ranking by words with one by meaning. Returns the items with their sums, the best first.
pub fn fuse_search(by_words: &[u64], by_meaning: &[u64]) -> Vec<(u64, f32)> {
    let mut fused = fuse(&[(by_words, WORDS), (by_meaning, 1.0)]);
    let place = by_words
        .first()
        .and_then(|first| fused.iter().position(|(id, _)| id == first));
    if let Some(late) = place.filter(|place| *place >= FIRST_BY_WORDS) {
        let (id, _) = fused.remove(late);
        let sum = fused[FIRST_BY_WORDS - 1].1;
        fused.insert(FIRST_BY_WORDS - 1, (id, sum));
    }
    fused
}

/// Fuses rankings, each with the best first and with what it counts. Returns the items with their sums, the best first.
pub fn fuse(lists: &[(&[u64], f32)]) -> Vec<(u64, f32)> {
    let mut sums: HashMap<u64, (f32, usize)> = HashMap::new();
    let mut order = 0;
    for (list, weight) in lists {
        let mut rank = K;
        for item in *list {
            rank += 1.0;
            let sum = sums.entry(*item).or_insert_with(|| {
                order += 1;
                (0.0, order)
            });
            sum.0 += weight / rank;
        }
    }
    let mut fused: Vec<_> = sums.into_iter().collect();
    // Equal ones stay in the order in which they came.
    fused.sort_by(|(_, (one, early)), (_, (other, late))| {
        other.total_cmp(one).then(early.cmp(late))
    });
    fused
        .into_iter()
        .map(|(item, (sum, _))| (item, sum))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_rankings_have_comes_first() {
        let fused = fuse(&[(&[1, 2, 3], 1.0), (&[3, 4], 1.0)]);
        let order: Vec<_> = fused.iter().map(|(item, _)| *item).collect();
        assert_eq!(order, [3, 1, 2, 4]);
        assert!((fused[0].1 - (1.0 / 13.0 + 1.0 / 11.0)).abs() < 1e-6);
        assert_eq!(fuse(&[]), []);
    }

    #[test]
    fn a_search_goes_by_meaning_first_and_keeps_the_first_by_words() {
        let order = |by_words: &[u64], by_meaning: &[u64]| -> Vec<u64> {
            let fused = fuse_search(by_words, by_meaning);
            assert!(fused.is_sorted_by(|(_, one), (_, other)| one >= other));
            fused.into_iter().map(|(item, _)| item).collect()
        };
        assert_eq!(order(&[1, 2], &[3, 4]), [3, 4, 1, 2]);
        assert_eq!(order(&[9, 8], &[1, 2, 3, 4, 5]), [1, 2, 9, 3, 4, 5, 8]);
        assert_eq!(order(&[1, 2], &[]), [1, 2]);
        assert_eq!(order(&[], &[3]), [3]);
    }
}
