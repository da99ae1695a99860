//! Whether a message needs a cloud: a rule over a model's triage.

use super::{MOST_URGENT, MessageType, Triage};
use tierbar_routing::{self as routing, Level};

/// Words of a message that only greets or thanks.
const LONGEST_GREETING: usize = 150;

/// Whether a message should go to a cloud, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloudNeed {
    pub needed: bool,
    /// Whether a rule decides, and not the model's estimate.
    pub by_rule: bool,
    /// A clause in ASCII.
    pub because: &'static str,
}

impl CloudNeed {
    const fn none(because: &'static str) -> Self {
        Self {
            needed: false,
            by_rule: true,
            because,
        }
    }

    /// Returns the need of a message that is a greeting by its words alone, so that no model has to read it; `None` for
    /// any other.
    pub fn of_greeting(message: &str) -> Option<Self> {
        let need = Self::none("the message is a greeting");
        routing::is_greeting(message).then_some(need)
    }

    /// Returns the need of a message whose model has failed the examination: neither its type nor its estimate counts.
    pub const fn without_judgment() -> Self {
        Self {
            needed: true,
            by_rule: true,
            because: "the model failed the triage test, so only a plain greeting needs no cloud",
        }
    }
}

impl Triage {
    /// Returns whether the message needs a cloud. A greeting and a message that only informs do not, unless the message
    /// itself speaks against that: it is for now, asks a question, is a hard task by the rules of `auto`, or is too long
    /// to be a greeting. Of all others the model's estimate counts.
    pub fn cloud_need(self, message: &str) -> CloudNeed {
        let none = match self.kind {
            MessageType::Greeting => "the message only greets",
            MessageType::Fyi => "the message only informs",
            _ if self.needs_cloud => {
                return self.estimate("the model estimates that a small one would fail");
            }
            _ => return self.estimate("the model estimates that a small one can answer"),
        };
        let is_long = self.kind == MessageType::Greeting
            && message.split_whitespace().count() > LONGEST_GREETING;
        let hard = routing::judge_text(message);
        if self.urgency == MOST_URGENT {
            self.estimate("it is for now, so the model's estimate counts")
        } else if has_question(message) {
            self.estimate("it asks a question, so the model's estimate counts")
        } else if is_long {
            self.estimate("it is long for a greeting, so the model's estimate counts")
        } else if hard.sure && hard.level == Level::Hard {
            self.estimate("auto's rules rate it hard, so the model's estimate counts")
        } else {
            CloudNeed::none(none)
        }
    }

    fn estimate(self, because: &'static str) -> CloudNeed {
        CloudNeed {
            needed: self.needs_cloud,
            by_rule: false,
            because,
        }
    }
}

/// Returns whether it has a question: a question mark in an address is none.
fn has_question(message: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
    let marks = message.match_indices(['?', '？']);
    let mut rests = marks.map(|(at, mark)| &message[at + mark.len()..]);
    rests.any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(kind: MessageType, urgency: u8, message: &str) -> CloudNeed {
        let triage = Triage {
            kind,
            urgency,
            needs_cloud: true,
        };
        triage.cloud_need(message)
    }

    #[test]
    fn a_greeting_and_an_fyi_need_no_cloud_by_rule() {
        for (kind, message, because) in [
            (
                MessageType::Greeting,
                "Happy birthday!",
                "the message only greets",
            ),
            (
                MessageType::Fyi,
                "The backup ran. See https://a.example/log?id=3",
                "the message only informs",
            ),
        ] {
            let need = need(kind, 2, message);
            assert!(!need.needed && need.by_rule, "{message}");
            assert_eq!(need.because, because);
        }
        for kind in [
            MessageType::Question,
            MessageType::Problem,
            MessageType::Promotion,
        ] {
            assert!(need(kind, 0, "x").needed, "{kind:?}");
        }
    }

    #[test]
    fn a_message_that_speaks_against_its_type_is_not_held_back() {
        let long = "thank you ".repeat(100);
        for (kind, urgency, message) in [
            (MessageType::Fyi, 3, "The building is being evacuated."),
            (
                MessageType::Fyi,
                0,
                "The export failed. Can you look at it?",
            ),
            (MessageType::Greeting, 0, "谢谢。哪一天？"),
            (MessageType::Greeting, 0, &long),
            (
                MessageType::Greeting,
                0,
                "Prove that there are infinitely many primes.",
            ),
        ] {
            let need = need(kind, urgency, message);
            assert!(need.needed && !need.by_rule, "{message}");
        }
    }

    #[test]
    fn the_models_estimate_counts_for_other_types() {
        let mut triage = Triage {
            kind: MessageType::Request,
            urgency: 1,
            needs_cloud: false,
        };
        assert!(!triage.cloud_need("Water the plants.").needed);
        triage.needs_cloud = true;
        assert!(triage.cloud_need("Water the plants.").needed);
    }

    #[test]
    fn a_plain_greeting_is_known_without_a_model() {
        assert!(CloudNeed::of_greeting("Hi, thank you!").is_some_and(|need| !need.needed));
        for message in ["thanks, now prove it", "The backup ran.", ""] {
            assert_eq!(CloudNeed::of_greeting(message), None, "{message}");
        }
    }
}
