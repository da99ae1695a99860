//! How likely each expert is to be used by the next token. Learned from the choices of all tokens before, of experts that are held
//! and of those that are not.
//!
//! Experts are classed by how long ago they were used last (their *age*) and by how often they were used (their *count*). In each
//! class of both, the experts that tokens could have used and those that they have are counted; the ratio of the two is the
//! likelihood. Where few were counted, it is near the product of two factors, one of the age and one of the count, which are fitted
//! in turn (iterative proportional fitting: Deming and Stephan, *Annals of Mathematical Statistics* 11(4), 1940). Where the age says
//! all, what was used longest ago is the least likely; where the count says all, what was used least.

/// After as many tokens, what was learned counts half. With 32 to 48 tokens, [`COUNTED_TOKENS`] from 256 to 1,024 and [`FACTORS`]
/// from 60 to 100, ours misses at most 1.10 to 1.11 times as much as the better one of LRU and LFU (`make bench-eviction`, at all
/// budgets from 10 to 80 %).
const LEARNED_TOKENS: f32 = 40.0;
/// After as many tokens, a use of an expert counts half.
const COUNTED_TOKENS: f32 = 256.0;
/// Classes of ages: 1, 2, up to 4, up to 8 and so on.
const AGES: usize = 14;
/// Classes of counts, three to each doubling. With a use by every token, a count comes to 370.
const COUNTS: usize = 26;
/// Experts that count for what a factor is before anything is learned.
const PRIOR: f32 = 1.0;
/// Experts that count in each class for the product of its factors.
const FACTORS: f32 = 60.0;

/// When an expert was used, and how often.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UseHistory {
    /// The token that used it last.
    pub(crate) last: u64,
    /// 0 if none has. As of that token.
    count: f32,
    count_class: usize,
}

impl UseHistory {
    /// The classes of age and count at a token; `None` if it was never used.
    fn classes(&self, token: u64) -> Option<(usize, usize)> {
        let before = token.saturating_sub(self.last).saturating_sub(1);
        let age = (u64::BITS - before.leading_zeros()) as usize;
        (self.count > 0.0).then_some((age.min(AGES - 1), self.count_class))
    }

    fn add(&mut self, token: u64) {
        let age = token.saturating_sub(self.last) as f32;
        self.count = 1.0 + self.count * (-age / COUNTED_TOKENS).exp2();
        self.count_class = ((3.0 * self.count.log2()) as usize).min(COUNTS - 1);
        self.last = token;
    }
}

/// What was learned of a router.
#[derive(Debug)]
pub(crate) struct Likelihood {
    /// By class of age and of count: how many experts tokens could have used, and how many they have.
    offered: [[f32; COUNTS]; AGES],
    used: [[f32; COUNTS]; AGES],
    of_age: [f32; AGES],
    of_count: [f32; COUNTS],
    likely: [[f32; COUNTS]; AGES],
}

impl Likelihood {
    pub(crate) fn new() -> Self {
        let mut this = Self {
            offered: [[0.0; COUNTS]; AGES],
            used: [[0.0; COUNTS]; AGES],
            of_age: [0.0; AGES],
            of_count: [1.0; COUNTS],
            likely: [[0.0; COUNTS]; AGES],
        };
        this.fit();
        this
    }

    /// A token begins, which can use each of these.
    pub(crate) fn begin<'a>(
        &mut self,
        token: u64,
        histories: impl Iterator<Item = &'a UseHistory>,
    ) {
        self.fit();
        let kept = (-1.0 / LEARNED_TOKENS).exp2();
        let tables = self.offered.iter_mut().chain(&mut self.used);
        tables.flatten().for_each(|count| *count *= kept);
        for (age, count) in histories.filter_map(|history| history.classes(token)) {
            self.offered[age][count] += 1.0;
        }
    }

    /// A token uses an expert.
    pub(crate) fn learn(&mut self, history: &mut UseHistory, token: u64) {
        if let Some((age, count)) = history.classes(token) {
            self.used[age][count] += 1.0;
        }
        history.add(token);
    }

    /// Returns how likely a token is to use an expert; 0 if none ever has.
    pub(crate) fn of(&self, history: &UseHistory, token: u64) -> f32 {
        let classes = history.classes(token);
        classes.map_or(0.0, |(age, count)| self.likely[age][count])
    }

    /// Fits each factor to the other, once: they change little from one token to the next.
    fn fit(&mut self) {
        // What is not known of an age is half of the next lower one's: what was used longest ago is the least likely.
        let mut lower = 1.0;
        for age in 0..AGES {
            let expected = std::iter::zip(&self.offered[age], &self.of_count);
            let expected: f32 = expected.map(|(offered, factor)| offered * factor).sum();
            let used: f32 = self.used[age].iter().sum();
            lower = (used + PRIOR * lower / 2.0) / (expected + PRIOR);
            self.of_age[age] = lower;
        }
        // And of a count, as much as of the next lower one.
        let mut lower = 1.0;
        for count in 0..COUNTS {
            let (mut used, mut expected) = (0.0, 0.0);
            for age in 0..AGES {
                used += self.used[age][count];
                expected += self.offered[age][count] * self.of_age[age];
            }
            lower = (used + PRIOR * lower) / (expected + PRIOR);
            self.of_count[count] = lower;
        }
        for age in 0..AGES {
            for count in 0..COUNTS {
                let product = self.of_age[age] * self.of_count[count];
                let used = self.used[age][count] + FACTORS * product;
                self.likely[age][count] = used / (self.offered[age][count] + FACTORS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 64 experts, each token takes those for which `uses` is true of it and their number.
    fn learn(tokens: u64, uses: impl Fn(u64, usize) -> bool) -> (Likelihood, Vec<UseHistory>) {
        let (mut likelihood, mut experts) = (Likelihood::new(), vec![UseHistory::default(); 64]);
        for token in 1..=tokens {
            likelihood.begin(token, experts.iter());
            for (number, history) in experts.iter_mut().enumerate() {
                if uses(token, number) {
                    likelihood.learn(history, token);
                }
            }
        }
        likelihood.begin(tokens + 1, experts.iter());
        (likelihood, experts)
    }

    #[test]
    fn ages_and_counts_fall_into_classes() {
        let mut history = UseHistory::default();
        assert_eq!(history.classes(9), None);
        history.add(10);
        let ages = [10, 11, 12, 14, 15, 18, 19, 1 << 40].map(|token| history.classes(token));
        let expected = [0, 0, 1, 2, 3, 3, 4, AGES - 1].map(|age| Some((age, 0)));
        assert_eq!(ages, expected);
        for token in 11..10_000 {
            history.add(token);
        }
        assert_eq!(history.classes(10_000), Some((0, COUNTS - 1)));
    }

    #[test]
    fn an_unknown_router_prefers_what_was_used_last() {
        let (likelihood, mut history) = (Likelihood::new(), UseHistory::default());
        assert!(likelihood.of(&history, 5).abs() < f32::EPSILON);
        history.add(4);
        let ages = [5, 6, 8, 12, 1000].map(|token| likelihood.of(&history, token));
        assert!(ages.is_sorted_by(|one, next| one > next), "{ages:?}");
        assert!(
            ages.iter().all(|&each| each > 0.0 && each <= 0.5),
            "{ages:?}"
        );
    }

    #[test]
    fn a_router_with_favorites_is_known_by_counts() {
        // By chance, one token in two uses an expert of an even number, and one in sixteen another.
        let (likelihood, experts) = learn(300, |token, number| {
            let every = if number % 2 == 0 { 2 } else { 16 };
            let mixed = (token * 64 + number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed >> 40).is_multiple_of(every)
        });
        // A favorite that was used long ago is likelier than another that was used just now.
        let (favorite, other) = (
            UseHistory {
                last: 290,
                ..experts[0]
            },
            UseHistory {
                last: 300,
                ..experts[1]
            },
        );
        let likely = [&favorite, &other].map(|history| likelihood.of(history, 301));
        assert!(likely[0] > 2.0 * likely[1], "{likely:?}");
    }

    #[test]
    fn a_router_that_repeats_itself_is_known_by_ages() {
        // What was used by the last token is used again, and after 20 others take its place.
        let repeats = |token: u64, number: usize| number as u64 / 8 == token / 20 % 8;
        let (likelihood, experts) = learn(330, repeats);
        let likely = [0, 8, 16, 24].map(|number| likelihood.of(&experts[number], 331));
        assert!(likely[0] > 20.0 * likely[3], "{likely:?}");
    }
}
