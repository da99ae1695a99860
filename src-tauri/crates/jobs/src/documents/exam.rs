//! Questions about passages, by which a model shows that it cites the passage that it answers from.

use super::answer::request_fields;
use crate::exams::Questions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tierbar_core::judgment::Judgment;
use tierbar_documents::answer::{
    INSTRUCTIONS, QuotedPassage, check_citations, is_not_found, question,
};
use tierbar_inference::exams::ExamResult;

const TOKENS: u32 = 128;
const ENOUGH_RIGHT: usize = 4;

const PASSAGES: [(&str, &str); 3] = [
    (
        "House rules",
        "The laundry room is open from 7 to 21 o'clock. Each flat has one washing day a week. Bicycles stand in the yard, and prams \
        in the hall. The front door is locked at 22 o'clock.",
    ),
    (
        "Annual meeting",
        "The owners met in the town hall on 14 March. They chose Ms Kowalski as their speaker for two years. The roof will be \
        repaired in autumn for 31,000 euros. The next meeting is in February.",
    ),
    (
        "Garden",
        "Four apple trees were planted behind the house. Mr Osei waters them in summer and has the key to the shed. The grill may be \
        used on weekends. Leaves are collected by a company in November.",
    ),
];

/// A question about [`PASSAGES`], the passage that answers it, and a word of the answer; none if no passage does.
const PROBES: [(&str, Option<(usize, &str)>); 6] = [
    ("Who has the key to the shed?", Some((3, "Osei"))),
    (
        "How much does the repair of the roof cost?",
        Some((2, "31")),
    ),
    ("When is the front door locked?", Some((1, "22"))),
    ("What does the elevator cost each year?", None),
    ("Who is the speaker of the owners?", Some((2, "Kowalski"))),
    ("Where do the bicycles stand?", Some((1, "yard"))),
];

/// How many questions a model has answered with the right citation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CitationExam {
    right: usize,
}

impl ExamResult for CitationExam {
    const JUDGMENT: Judgment = Judgment::Citations;
    const OF: usize = PROBES.len();

    fn score(&self) -> (usize, bool) {
        (self.right, self.right >= ENOUGH_RIGHT)
    }
}

impl Questions for CitationExam {
    fn new(right: usize) -> Self {
        Self { right }
    }

    /// As a question about documents is asked.
    fn question(number: usize) -> Value {
        let passages = PASSAGES.map(|(title, text)| QuotedPassage {
            title,
            place: String::new(),
            text,
        });
        let message = question(PROBES[number].0, 1, &passages);
        request_fields(INSTRUCTIONS, &message, TOKENS)
    }

    fn is_right(number: usize, answer: &str, cut: bool) -> bool {
        let cited = check_citations(answer.trim(), PASSAGES.len());
        let is_cited = match PROBES[number].1 {
            Some((passage, word)) => {
                cited.numbers.iter().eq([&passage]) && cited.text.contains(word)
            }
            None => cited.numbers.is_empty() && is_not_found(&cited.text),
        };
        is_cited && cited.invented == 0 && !cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(answers: impl Fn(usize) -> String) -> CitationExam {
        let right = (0..PROBES.len())
            .filter(|&number| CitationExam::is_right(number, &answers(number), false));
        CitationExam::new(right.count())
    }

    #[test]
    fn the_passage_that_answers_is_to_be_cited() {
        let answers = |number: usize| match PROBES[number].1 {
            Some((passage, word)) => format!("It is {word}, [{passage}]."),
            None => "The documents do not say it.".to_owned(),
        };
        assert_eq!(right(answers).score(), (6, true));
        for wrong in [
            "Osei [1].",
            "Osei.",
            "Osei [3][2].",
            "Osei [3][7].",
            "He has it [3].",
        ] {
            assert!(!CitationExam::is_right(0, wrong, false), "{wrong}");
        }
        assert!(CitationExam::is_right(0, "Mr Osei [3].", false));
        assert!(!CitationExam::is_right(0, "Mr Osei [3].", true));
    }

    #[test]
    fn poetry_and_one_answer_to_everything_do_not_pass() {
        let everything: String = PASSAGES.iter().map(|(_, text)| *text).collect();
        let mut cases = vec![
            ("O gentle night, thou silver-footed guest.".to_owned(), 0),
            (String::new(), 0),
            ("The documents do not say it.".to_owned(), 1),
        ];
        cases.extend((1..=3).map(|passage| {
            let right = PROBES.iter().flat_map(|probe| probe.1);
            let right = right.filter(|(number, _)| *number == passage).count();
            (format!("{everything} [{passage}]"), right)
        }));
        for (answer, expected) in cases {
            let exam = right(|_| answer.clone());
            assert_eq!(exam.score(), (expected, false), "{answer}");
        }
    }

    #[test]
    fn the_question_is_that_about_documents() {
        let question = CitationExam::question(0);
        let user = question["messages"][1]["content"].as_str().unwrap();
        assert!(user.contains("Passage [3], from “Garden”:"), "{user}");
        assert!(
            user.ends_with("Question: Who has the key to the shed?"),
            "{user}"
        );
        assert_eq!(question["model"], Value::Null);
        assert_eq!(question["think"], false);
    }
}
