//! Messages of known types, by which a model shows that it can sort others.

use super::MessageType;
use serde::{Deserialize, Serialize};

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
}

impl TriageExam {
    /// Grades a model by the types that it gave the probes, in their order; `None` for an answer that could not be read.
    pub fn from_kinds(kinds: &[Option<MessageType>]) -> Self {
        let pairs = kinds.iter().zip(PROBES);
        let right = pairs.filter(|(kind, (_, expected))| **kind == Some(*expected));
        Self {
            right: right.count(),
        }
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

    #[test]
    fn three_quarters_of_the_probes_pass() {
        let mut kinds: Vec<_> = PROBES.iter().map(|(_, kind)| Some(*kind)).collect();
        assert_eq!(TriageExam::from_kinds(&kinds).right, 16);
        kinds[..4].fill(None);
        assert!(TriageExam::from_kinds(&kinds).is_passed());
        kinds[4] = Some(MessageType::Problem);
        assert!(!TriageExam::from_kinds(&kinds).is_passed());
    }

    #[test]
    fn one_answer_to_everything_does_not_pass() {
        for kind in MessageType::ALL {
            let exam = TriageExam::from_kinds(&[Some(kind); PROBES.len()]);
            assert_eq!((exam.right, exam.is_passed()), (2, false), "{kind:?}");
        }
        let shown = PROBES.iter().find(|(text, _)| INSTRUCTIONS.contains(text));
        assert_eq!(shown, None);
    }
}
