//! Which downloads run: a pure function of the whole list.

use tierbar_core::download::Priority;

/// Waiting downloads take no place, but their number is limited.
const MOST_WAITING: usize = 4;

/// A download that is to run, in order of age.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) priority: Priority,
    pub(super) running: RunStage,
    /// It may not run beside another one that still ends.
    pub(super) blocked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunStage {
    /// All its bytes are here: to interrupt it would only repeat its end.
    Finishing,
    Yes,
    /// Its server will not be tried again for a while.
    Waiting,
    /// It is not its turn, or its transfer has been canceled.
    No,
}

/// The candidates in the order in which they go.
///
/// Of two with equal priority, a running one keeps its place, so that an older one that returns does not preempt it.
pub(super) fn order(candidates: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|&index| {
        let candidate = &candidates[index];
        (
            candidate.running != RunStage::Finishing,
            std::cmp::Reverse(candidate.priority),
            candidate.running,
            index,
        )
    });
    order
}

/// Those of the candidates that should run: the first `at_once` that are not blocked, and beside them those that wait
/// for their servers, or one server that is away would hold up all downloads from others.
pub(super) fn candidates_to_run(candidates: &[Candidate], at_once: usize) -> Vec<usize> {
    let (mut places, mut waiting) = (at_once, MOST_WAITING);
    let mut order = order(candidates);
    order.retain(|&index| {
        let candidate = &candidates[index];
        let left = match candidate.running {
            RunStage::Waiting if waiting > 0 => &mut waiting,
            _ => &mut places,
        };
        let runs = !candidate.blocked && *left > 0;
        *left -= usize::from(runs);
        runs
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use Priority::{High, Low, Normal};
    use RunStage::{Finishing, No, Waiting, Yes};

    fn wanted(candidates: &[(Priority, RunStage)], at_once: usize) -> Vec<usize> {
        let candidates: Vec<_> = candidates
            .iter()
            .map(|&(priority, running)| Candidate {
                priority,
                running,
                blocked: false,
            })
            .collect();
        super::candidates_to_run(&candidates, at_once)
    }

    #[test]
    fn higher_priority_goes_first_then_the_older_download() {
        let waiting = [(Low, No), (Normal, No), (High, No), (Normal, No)];
        assert_eq!(wanted(&waiting, 4), [2, 1, 3, 0]);
        assert_eq!(wanted(&waiting, 2), [2, 1]);
    }

    #[test]
    fn a_higher_priority_preempts_the_lowest_running_one() {
        let all = [(Low, Yes), (Normal, Yes), (High, No)];
        assert_eq!(wanted(&all, 2), [2, 1]);
    }

    #[test]
    fn an_older_download_of_equal_priority_does_not_preempt() {
        assert_eq!(wanted(&[(Normal, No), (Normal, Yes)], 1), [1]);
    }

    #[test]
    fn a_complete_download_is_not_preempted() {
        assert_eq!(wanted(&[(Low, Finishing), (High, No)], 1), [0]);
    }

    #[test]
    fn waiting_downloads_take_no_place_up_to_a_limit() {
        let two = [(Normal, Waiting), (Normal, No), (Normal, No)];
        assert_eq!(wanted(&two, 1), [0, 1]);
        let many = [(Normal, Waiting); 6];
        assert_eq!(wanted(&many, 1), [0, 1, 2, 3, 4]);
        assert_eq!(wanted(&[(Normal, Waiting), (Normal, Yes)], 1), [1, 0]);
    }

    #[test]
    fn a_blocked_download_leaves_its_place_to_the_next() {
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
        assert_eq!(super::candidates_to_run(&[blocked, free], 1), [1]);
    }
}
