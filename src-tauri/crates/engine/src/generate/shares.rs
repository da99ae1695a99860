//! Divides the tokens of the next evaluation among generations, as a pure function.

use std::time::Duration;

/// The target duration of a step beside streams, so that they continue during the prefill of a long prompt. Also the delay of a
/// cancel if an evaluation cannot be interrupted.
const STEP: Duration = Duration::from_millis(50);
/// Fewer tokens per evaluation cost nearly as much.
const LEAST: usize = 32;

/// Returns a number of tokens for each generation in `wants`: at most what it wants, and at most `room` together.
///
/// A generation that wants one token is streaming and gets it. The others are in prefill and share the rest of `prefill`
/// evenly, so that a short prompt finishes before a long one.
pub(super) fn divide_step(wants: &[usize], room: usize, prefill: usize) -> Vec<usize> {
    let mut shares = vec![0; wants.len()];
    let mut room = room;
    for (share, _) in shares.iter_mut().zip(wants).filter(|(_, want)| **want == 1) {
        *share = room.min(1);
        room -= *share;
    }
    let mut left = room.min(prefill);
    let mut readers: Vec<_> = (0..wants.len()).filter(|&at| wants[at] > 1).collect();
    readers.sort_by_key(|&at| wants[at]);
    for (served, &at) in readers.iter().enumerate() {
        let even = left.div_ceil(readers.len() - served);
        shares[at] = wants[at].min(even);
        left -= shares[at];
    }
    shares
}

/// The prefill speed, by the last steps.
#[derive(Debug, Default)]
pub(super) struct PrefillPace {
    seconds_per_token: f64,
}

impl PrefillPace {
    /// Records the time of a step. A step of a few tokens says nothing about many, and is ignored.
    pub(super) fn observe(&mut self, tokens: usize, took: Duration) {
        if tokens < LEAST {
            return;
        }
        let now = took.as_secs_f64() / tokens as f64;
        self.seconds_per_token = if self.seconds_per_token > 0.0 {
            self.seconds_per_token.mul_add(0.7, now * 0.3)
        } else {
            now
        };
    }

    /// Returns how many prompt tokens fit in a step: a power of two, since steps of the same size reuse their graph.
    pub(super) fn chunk(&self, most: usize) -> usize {
        let mut chunk = LEAST;
        while chunk * 2 <= most {
            let seconds = self.seconds_per_token * (chunk * 2) as f64;
            if seconds == 0.0 || seconds > STEP.as_secs_f64() {
                break;
            }
            chunk *= 2;
        }
        chunk.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_get_a_token_beside_any_prompts() {
        assert_eq!(divide_step(&[1, 5000, 1], 512, 64), [1, 64, 1]);
        assert_eq!(divide_step(&[1, 1, 1], 512, 64), [1, 1, 1]);
        assert_eq!(divide_step(&[5000, 1], 512, 0), [0, 1]);
    }

    #[test]
    fn prompts_share_the_batch_evenly() {
        assert_eq!(divide_step(&[5000, 4000], 512, 512), [256, 256]);
        assert_eq!(divide_step(&[5000, 10, 4000], 512, 512), [251, 10, 251]);
        assert_eq!(divide_step(&[300], 512, 512), [300]);
        assert_eq!(divide_step(&[700, 2], 3, 512), [1, 2]);
        assert_eq!(divide_step(&[], 512, 512), [0; 0]);
    }

    #[test]
    fn no_evaluation_exceeds_its_room() {
        for (wants, room) in [(vec![1; 9], 4), (vec![9, 1, 9], 3), (vec![600, 600], 512)] {
            assert!(divide_step(&wants, room, 512).iter().sum::<usize>() <= room);
        }
    }

    #[test]
    fn the_chunk_size_follows_the_measured_pace() {
        let mut pace = PrefillPace::default();
        assert_eq!(pace.chunk(512), LEAST);
        pace.observe(128, Duration::from_millis(32));
        assert_eq!(pace.chunk(512), 128);
        pace.observe(1, Duration::from_secs(9));
        assert_eq!(pace.chunk(512), 128);
        assert_eq!(pace.chunk(20), 20);
        for _ in 0..20 {
            pace.observe(512, Duration::from_millis(5));
        }
        assert_eq!(pace.chunk(512), 512);
        for _ in 0..20 {
            pace.observe(64, Duration::from_secs(2));
        }
        assert_eq!(pace.chunk(512), LEAST);
    }
}
