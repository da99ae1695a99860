//! Messages of known types, by which a model shows that it can sort others.

use super::MessageType;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Two of each type. None is in the instructions or in the evaluation set.
pub const PROBES: [(&str, MessageType); 16] = [
    (
        "The printer on the second floor jams on every page since this morning.",
        MessageType::Problem,
    ),
    (
        "My parcel arrived with a broken lid, and I am not happy about that.",
        MessageType::Problem,
    ),
    (
        "Please water the plants in the hall while I am away.",
        MessageType::Request,
    ),
    (
        "Please send me the signed contract as a PDF.",
        MessageType::Request,
    ),
    (
        "Let us move our call from Monday to Wednesday at ten.",
        MessageType::Appointment,
    ),
    (
        "I confirm our lunch on Friday at half past twelve.",
        MessageType::Appointment,
    ),
    ("Which bus goes to the airport?", MessageType::Question),
    (
        "How many days of leave do I have left?",
        MessageType::Question,
    ),
    (
        "We might paint the meeting room green, just a thought.",
        MessageType::Idea,
    ),
    (
        "Perhaps the newsletter could come out every second month.",
        MessageType::Idea,
    ),
    (
        "Big summer sale: all shoes half price until Sunday, visit our shop!",
        MessageType::Promotion,
    ),
    (
        "Subscribe today and get three months of our streaming service for free.",
        MessageType::Promotion,
    ),
    (
        "For your information: the canteen was repainted over the weekend.",
        MessageType::Fyi,
    ),
    (
        "The nightly backup finished at 02:10 without errors.",
        MessageType::Fyi,
    ),
    ("Happy birthday and all the best!", MessageType::Greeting),
    (
        "Many thanks and warm regards from Oslo.",
        MessageType::Greeting,
    ),
];
/// A model that answers with one type has two right.
const ENOUGH_RIGHT: usize = 12;

/// How a model did on [`PROBES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriageExam {
    pub right: usize,
    /// The median time of an answer.
    pub milliseconds: u64,
}

impl TriageExam {
    /// Grades a model by the types that it gave the probes, in their order, and the time that each took; `None` for an answer that could
    /// not be read.
    pub fn from_answers(answers: &[(Option<MessageType>, Duration)]) -> Self {
        let pairs = answers.iter().zip(PROBES);
        let right = pairs.filter(|((kind, _), (_, expected))| *kind == Some(*expected));
        let mut times: Vec<_> = answers.iter().map(|(_, time)| time.as_millis()).collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        Self {
            right: right.count(),
            milliseconds: u64::try_from(median).unwrap_or(u64::MAX),
        }
    }

    /// Returns the median time of an answer.
    pub fn time(self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }

    /// Returns whether the model sorts messages well enough.
    pub fn is_passed(self) -> bool {
        self.right >= ENOUGH_RIGHT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triage::INSTRUCTIONS;

    const QUICK: Duration = Duration::from_millis(200);

    #[test]
    fn three_quarters_of_the_probes_pass() {
        let mut answers = PROBES.map(|(_, kind)| (Some(kind), QUICK));
        // The first may load the model.
        answers[0].1 = Duration::from_secs(9);
        let exam = TriageExam::from_answers(&answers);
        assert_eq!((exam.right, exam.milliseconds), (16, 200));
        answers[..4].fill((None, QUICK));
        assert!(TriageExam::from_answers(&answers).is_passed());
        answers[4].0 = Some(MessageType::Problem);
        assert!(!TriageExam::from_answers(&answers).is_passed());
    }

    #[test]
    fn one_answer_to_everything_does_not_pass() {
        for kind in MessageType::ALL {
            let exam = TriageExam::from_answers(&[(Some(kind), QUICK); PROBES.len()]);
            assert_eq!((exam.right, exam.is_passed()), (2, false), "{kind:?}");
        }
        let shown = PROBES.iter().find(|(text, _)| INSTRUCTIONS.contains(text));
        assert_eq!(shown, None);
    }
}
