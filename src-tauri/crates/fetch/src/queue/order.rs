//! Which downloads run: a pure function of the whole list.

use tierbar_core::download::Priority;

/// One download that means to go on, in the order of age.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) priority: Priority,
    pub(super) running: Running,
    /// It may not run beside another one that still ends.
    pub(super) blocked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Running {
    /// All its bytes are here: to interrupt it would only repeat its end.
    Finishing,
    Yes,
    /// It waits, or its transfer has been told to end.
    No,
}

/// The candidates in the order in which they go; the first `at_once` of them that are not blocked should run.
///
/// Of two alike, one that runs keeps its place, so that an older one that comes back interrupts nobody.
pub(super) fn order(candidates: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|&index| {
        let candidate = &candidates[index];
        (
            candidate.running != Running::Finishing,
            std::cmp::Reverse(candidate.priority),
            candidate.running,
            index,
        )
    });
    order
}

/// Those of the candidates that should run.
pub(super) fn wanted(candidates: &[Candidate], at_once: usize) -> Vec<usize> {
    order(candidates)
        .into_iter()
        .filter(|&index| !candidates[index].blocked)
        .take(at_once)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Priority::{High, Low, Normal};
    use Running::{Finishing, No, Yes};

    fn wanted(candidates: &[(Priority, Running)], at_once: usize) -> Vec<usize> {
        let candidates: Vec<_> = candidates
            .iter()
            .map(|&(priority, running)| Candidate {
                priority,
                running,
                blocked: false,
            })
            .collect();
        super::wanted(&candidates, at_once)
    }

    #[test]
    fn the_higher_priority_goes_first_and_of_two_alike_the_older() {
        let waiting = [(Low, No), (Normal, No), (High, No), (Normal, No)];
        assert_eq!(wanted(&waiting, 4), [2, 1, 3, 0]);
        assert_eq!(wanted(&waiting, 2), [2, 1]);
    }

    #[test]
    fn a_higher_priority_takes_the_place_of_the_lowest_that_runs() {
        let all = [(Low, Yes), (Normal, Yes), (High, No)];
        assert_eq!(wanted(&all, 2), [2, 1]);
    }

    #[test]
    fn nobody_is_interrupted_for_an_older_one_of_the_same_priority() {
        assert_eq!(wanted(&[(Normal, No), (Normal, Yes)], 1), [1]);
    }

    #[test]
    fn what_is_all_here_is_not_interrupted() {
        assert_eq!(wanted(&[(Low, Finishing), (High, No)], 1), [0]);
    }

    #[test]
    fn a_blocked_one_leaves_its_place_to_the_next() {
        let blocked = Candidate {
            priority: High,
            running: No,
            blocked: true,
        };
        let free = Candidate {
            priority: Low,
            running: No,
            blocked: false,
        };
        assert_eq!(super::wanted(&[blocked, free], 1), [1]);
    }
}
