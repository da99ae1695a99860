//! Short texts with facts, by which a model shows that it can shorten others: each in so many words, without losing what matters.

use super::{
    ask::{TaskPrompt, text_schema},
    message::Message,
};
use crate::exams::Questions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tierbar_chats::lenient;
use tierbar_core::judgment::Judgment;
use tierbar_inference::exams::ExamResult;
use tierbar_tasks::count_words;

/// How many words a summary may have.
const WORDS: usize = 30;
/// Models count badly: this many more are no fault.
const MORE_WORDS: usize = WORDS / 4;
const TOKENS: u32 = 160;
const ENOUGH_RIGHT: usize = 4;

/// A text, and three facts that a summary should have, each in the forms that it may take. Two are enough.
struct Probe {
    text: &'static str,
    facts: [&'static [&'static str]; 3],
}

/// None is in the evaluation set, and none begins with two of its facts.
const PROBES: [Probe; 6] = [
    Probe {
        text: "Dear neighbors, many of you have asked about the noise in the yard, and I am sorry that nothing was said \
            earlier. The house next door is getting a new roof. Work began last week, was stopped by the rain, and goes on from \
            Monday. The company, Hartwell Roofing, tells us that the scaffolding stays until 28 June. During that time the back \
            gate is locked, and the bicycles have to stand in the garage at number 17.",
        facts: [&["Hartwell"], &["28 June", "June 28"], &["17"]],
    },
    Probe {
        text: "It was a long meeting with coffee and cake, and at first people talked about the weather and the holidays. \
            Then the treasurer gave her report. The choir has 2,350 euros in its account. After some discussion, the members \
            decided to sing in Porto in October, and not in Vienna as it was planned. Each member pays 180 euros for the trip. \
            At the end, Mr Delgado thanked everyone for the flowers.",
        facts: [&["Porto"], &["October"], &["180"]],
    },
    Probe {
        text: "As you may remember, we had some trouble with the heating in the last winter, and the landlord promised to \
            look into it. He has kept his word. A technician of Brandt & Sons was here on Tuesday and found that the pump is \
            broken. A new one costs 640 euros and will be put in on 9 November. Until then, please use the electric heaters that \
            are in the basement, and open the windows less often than you would like to.",
        facts: [&["pump"], &["640"], &["9 November", "November 9"]],
    },
    Probe {
        text: "The library of our town is a friendly place, and it has been so for almost a hundred years. From next month \
            on, however, some things change there. Because two people retire, it stays closed on Wednesdays. Books can be kept \
            for 21 days instead of 28. Those who are late pay 50 cents a day. The reading group of Ms Okonkwo moves to the town \
            hall, where there is more room and a lift.",
        facts: [&["Wednesday"], &["21"], &["Okonkwo", "town hall"]],
    },
    Probe {
        text: "Liebe Eltern, nach den Ferien haben sich alle gut eingelebt, und die Stimmung in der Klasse ist schön. Nun \
            steht die erste gemeinsame Fahrt an. Wir fahren mit dem Zug nach Lübeck und wohnen dort in der Jugendherberge am \
            Wasser. Los geht es am 12. Mai um 8 Uhr am Bahnhof. Die Fahrt kostet 95 Euro, die Frau Petersen bis Ende April \
            einsammelt. Bitte denken Sie an Regenjacken und gute Schuhe.",
        facts: [&["Lübeck"], &["12. Mai"], &["95"]],
    },
    Probe {
        text: "Bonjour à tous, merci encore pour votre aide pendant la fête du quartier, qui a été une vraie réussite malgré \
            le vent. Comme chaque année, il reste à ranger. Nous nous retrouvons samedi à 10 heures devant l’école. La vente des \
            gâteaux a rapporté 415 euros. Avec cet argent, nous achetons une nouvelle balançoire pour le parc. Si vous avez une \
            remorque, appelez Madame Fournier avant vendredi.",
        facts: [&["samedi"], &["415"], &["balançoire"]],
    },
];

/// How many texts a model has shortened well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SummaryExam {
    right: usize,
}

impl ExamResult for SummaryExam {
    const JUDGMENT: Judgment = Judgment::Summaries;
    const OF: usize = PROBES.len();

    fn score(&self) -> (usize, bool) {
        (self.right, self.right >= ENOUGH_RIGHT)
    }
}

impl Questions for SummaryExam {
    fn new(right: usize) -> Self {
        Self { right }
    }

    /// As `/v1/summarize` asks it.
    fn question(number: usize) -> Value {
        let prompt = TaskPrompt {
            system: include_str!("prompts/summarize.md").into(),
            user: Message::of_text(PROBES[number].text)
                .between(&format!("In at most {WORDS} words:"), ""),
            schema: text_schema(),
            max_tokens: TOKENS,
        };
        prompt.request(true)
    }

    fn is_right(number: usize, answer: &str, cut: bool) -> bool {
        let Some((text, false)) = lenient::text(answer, "text", cut) else {
            return false;
        };
        let text = text.to_lowercase();
        let is_kept = |fact: &&&[&str]| fact.iter().any(|form| text.contains(&form.to_lowercase()));
        let kept = PROBES[number].facts.iter().filter(is_kept).count();
        kept >= 2 && count_words(&text) <= WORDS + MORE_WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn right(answers: impl Fn(usize) -> String) -> SummaryExam {
        let right = (0..PROBES.len())
            .filter(|&number| SummaryExam::is_right(number, &answers(number), false));
        SummaryExam::new(right.count())
    }

    #[test]
    fn a_short_text_with_most_facts_is_right() {
        let answers = |number: usize| {
            let facts = &PROBES[number].facts;
            json!({"text": format!("It is about {} and {}.", facts[0][0], facts[2][0])}).to_string()
        };
        assert_eq!(right(answers).score(), (6, true));
        // An engine without schemas.
        assert!(SummaryExam::is_right(
            1,
            "A trip to Porto, 180 euros.",
            false
        ));
        assert!(!SummaryExam::is_right(1, "A trip to Porto.", false));
    }

    #[test]
    fn poetry_copies_and_beginnings_are_wrong() {
        let poem =
            "O gentle night, thou silver-footed guest, the weary town lies sleeping at thy breast.";
        let begins = |number: usize| {
            let words = PROBES[number].text.split_whitespace();
            words.take(WORDS).collect::<Vec<_>>().join(" ")
        };
        let cases: [(&str, &dyn Fn(usize) -> String); 5] = [
            ("poetry", &|_| poem.to_owned()),
            ("a copy", &|number| PROBES[number].text.to_owned()),
            ("its beginning", &begins),
            ("nothing", &|_| String::new()),
            ("no text", &|_| json!({"text": 7}).to_string()),
        ];
        for (name, answers) in cases {
            assert_eq!(right(answers).score(), (0, false), "{name}");
        }
    }

    #[test]
    fn the_question_is_that_of_a_summary() {
        let question = SummaryExam::question(0);
        let user = question["messages"][1]["content"].as_str().unwrap();
        assert!(user.starts_with("In at most 30 words:\n="), "{user}");
        assert!(user.contains(PROBES[0].text), "{user}");
        assert_eq!(question["think"], false);
        assert_eq!(question["model"], Value::Null);
        assert_eq!(question["response_format"]["type"], "json_schema");
    }
}
