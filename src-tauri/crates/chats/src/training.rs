//! Graded answers as lines to train a model with.

use crate::settings::AnswerSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tierbar_routing::{
    Level,
    grade::{Grade, GradeVerdict},
};

/// A graded answer with all that can be learned from it.
#[derive(Debug, Clone, PartialEq)]
pub struct GradedAnswer {
    pub chat: String,
    pub message: u64,
    /// The message that it answers.
    pub question: Option<u64>,
    /// What it was answered to, oldest first: a role and a text each.
    pub prompt: Vec<(&'static str, String)>,
    pub text: String,
    pub grade: Grade,
    pub model: Option<String>,
    pub tier: Option<String>,
    pub quant: Option<String>,
    pub level: Level,
    /// Those of the chat when the answer was graded.
    pub settings: AnswerSettings,
    /// RFC 3339.
    pub graded_at: String,
}

/// Which lines an export has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportForm {
    /// A pair where a question has a good and a bad answer, and a label for each other answer.
    #[default]
    All,
    /// Pairs alone, with `prompt`, `chosen` and `rejected`, as for DPO.
    Pairs,
    /// A label for each answer, with `prompt`, `completion` and `label`, as for KTO.
    Labels,
}

/// Returns the lines of an export, one JSON object each, of answers with the newest grade first.
pub fn export(answers: &[GradedAnswer], form: ExportForm) -> Vec<Value> {
    let answers = &without_repeats(answers);
    let mut lines = Vec::new();
    let mut paired = vec![false; answers.len()];
    if form != ExportForm::Labels {
        let bad = places_of(answers, GradeVerdict::Bad);
        for (question, places) in places_of(answers, GradeVerdict::Good) {
            for place in places {
                for &other in bad.get(&question).into_iter().flatten() {
                    if have_one_prompt(answers[place], answers[other]) {
                        (paired[place], paired[other]) = (true, true);
                        lines.push(pair(answers[place], answers[other]));
                    }
                }
            }
        }
    }
    if form != ExportForm::Pairs {
        let alone = answers.iter().zip(paired).filter(|(_, paired)| !paired);
        lines.extend(alone.map(|(answer, _)| label(answer)));
    }
    lines
}

type QuestionKey<'a> = (&'a str, u64);

/// What a model was asked: the instructions, and the conversation.
type PromptKey<'a> = (&'a str, &'a [(&'static str, String)]);

/// Of answers to one prompt with the same words, in whatever chats, the one that was graded last: from two, a model would learn one thing
/// twice, or that a text is better than itself. So each text is good or bad, and no pair contradicts another.
fn without_repeats(answers: &[GradedAnswer]) -> Vec<&GradedAnswer> {
    let mut of_prompt: BTreeMap<PromptKey<'_>, Vec<&str>> = BTreeMap::new();
    let mut kept = answers.iter().collect::<Vec<_>>();
    kept.retain(|&answer| {
        let prompt = (answer.settings.instructions.trim(), &*answer.prompt);
        let known = of_prompt.entry(prompt).or_default();
        let words = || answer.text.split_whitespace();
        let repeats = known.iter().any(|text| text.split_whitespace().eq(words()));
        if !repeats {
            known.push(&answer.text);
        }
        !repeats
    });
    kept
}

/// Under other instructions, the prompt of the same question was another one.
fn have_one_prompt(one: &GradedAnswer, other: &GradedAnswer) -> bool {
    one.settings.instructions.trim() == other.settings.instructions.trim()
}

/// The places of the answers with a verdict, by the question that they answer.
fn places_of<'a>(
    answers: &[&'a GradedAnswer],
    verdict: GradeVerdict,
) -> BTreeMap<QuestionKey<'a>, Vec<usize>> {
    let mut places: BTreeMap<QuestionKey<'_>, Vec<usize>> = BTreeMap::new();
    for (place, answer) in answers.iter().enumerate() {
        if let Some(question) = answer.question.filter(|_| answer.grade.verdict == verdict) {
            let of_question = places.entry((answer.chat.as_str(), question)).or_default();
            of_question.push(place);
        }
    }
    places
}

fn pair(good: &GradedAnswer, bad: &GradedAnswer) -> Value {
    json!({
        "prompt": prompt(good),
        "chosen": completion(good),
        "rejected": completion(bad),
        "metadata": {"chosen": metadata(good), "rejected": metadata(bad)},
    })
}

fn label(answer: &GradedAnswer) -> Value {
    json!({
        "prompt": prompt(answer),
        "completion": completion(answer),
        "label": answer.grade.verdict == GradeVerdict::Good,
        "metadata": metadata(answer),
    })
}

fn prompt(answer: &GradedAnswer) -> Value {
    let instructions = answer.settings.instructions.trim();
    let system = (!instructions.is_empty()).then_some(("system", instructions));
    let before = answer
        .prompt
        .iter()
        .map(|(role, text)| (*role, text.as_str()));
    let messages = system
        .into_iter()
        .chain(before)
        .map(|(role, content)| json!({"role": role, "content": content}));
    messages.collect()
}

fn completion(answer: &GradedAnswer) -> Value {
    json!([{"role": "assistant", "content": answer.text}])
}

fn metadata(answer: &GradedAnswer) -> Value {
    json!({
        "chat": answer.chat,
        "message": answer.message,
        "model": answer.model,
        "tier": answer.tier,
        "quant": answer.quant,
        "level": answer.level,
        "sampling": answer.settings.sampling,
        "thinking": answer.settings.thinking,
        "why": answer.grade.why,
        "graded_at": answer.graded_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(message: u64, question: u64, verdict: GradeVerdict) -> GradedAnswer {
        GradedAnswer {
            chat: "c".to_owned(),
            message,
            question: Some(question),
            prompt: vec![("user", format!("question {question}"))],
            text: format!("answer {message}"),
            grade: Grade { verdict, why: None },
            model: Some("small-Q4_K_M".to_owned()),
            tier: Some("fast".to_owned()),
            quant: Some("Q4_K_M".to_owned()),
            level: Level::Simple,
            settings: AnswerSettings::default(),
            graded_at: "2026-11-26T19:00:00Z".to_owned(),
        }
    }

    #[test]
    fn answers_to_one_question_make_a_pair() {
        let answers = [
            answer(2, 1, GradeVerdict::Good),
            answer(3, 1, GradeVerdict::Bad),
            answer(5, 4, GradeVerdict::Bad),
        ];
        let all = export(&answers, ExportForm::All);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0]["prompt"][0]["content"], "question 1");
        assert_eq!(all[0]["chosen"][0]["content"], "answer 2");
        assert_eq!(all[0]["rejected"][0]["content"], "answer 3");
        assert_eq!(all[1]["completion"][0]["content"], "answer 5");
        assert_eq!(all[1]["label"], false);
        assert_eq!(all[1]["metadata"]["quant"], "Q4_K_M");
        assert_eq!(export(&answers, ExportForm::Pairs), all[..1]);
        assert_eq!(export(&answers, ExportForm::Labels).len(), 3);
    }

    #[test]
    fn a_text_is_not_better_than_itself() {
        // The newest grade is first.
        let mut answers = [
            answer(2, 1, GradeVerdict::Bad),
            answer(3, 1, GradeVerdict::Good),
            answer(4, 1, GradeVerdict::Good),
            answer(5, 1, GradeVerdict::Good),
        ];
        for (at, text) in ["one two", " one\n\ntwo ", "one", "one"].iter().enumerate() {
            answers[at].text = (*text).to_owned();
        }
        let lines = export(&answers[..2], ExportForm::All);
        assert_eq!(lines.len(), 1);
        assert_eq!(
            (&lines[0]["label"], &lines[0]["metadata"]["message"]),
            (&json!(false), &json!(2))
        );
        assert!(export(&answers[..2], ExportForm::Pairs).is_empty());
        let pairs = export(&answers, ExportForm::Pairs);
        assert_eq!(pairs.len(), 1, "no pair is there twice");
        assert_eq!(pairs[0]["chosen"][0]["content"], "one");
        assert_eq!(export(&answers, ExportForm::Labels).len(), 2);
        // To another question, and under other instructions, the same words are another answer.
        answers[1].question = Some(9);
        answers[1].prompt = vec![("user", "question 9".to_owned())];
        answers[3].settings.instructions = "Answer in French.".to_owned();
        assert_eq!(export(&answers, ExportForm::Labels).len(), 4);
    }

    #[test]
    fn pairs_of_two_chats_do_not_contradict_each_other() {
        let mut answers = [
            answer(2, 1, GradeVerdict::Good),
            answer(3, 1, GradeVerdict::Bad),
            answer(2, 1, GradeVerdict::Bad),
            answer(3, 1, GradeVerdict::Good),
        ];
        for older in &mut answers[2..] {
            older.chat = "older".to_owned();
        }
        let lines = export(&answers, ExportForm::All);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["chosen"][0]["content"], "answer 2");
        assert_eq!(lines[0]["metadata"]["chosen"]["chat"], "c");
        assert_eq!(export(&answers, ExportForm::Labels).len(), 2);
    }

    #[test]
    fn answers_under_other_instructions_make_no_pair() {
        let mut answers = [
            answer(2, 1, GradeVerdict::Good),
            answer(3, 1, GradeVerdict::Bad),
        ];
        answers[1].settings.instructions = "Answer in French.".to_owned();
        let lines = export(&answers, ExportForm::All);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["prompt"][0]["role"], "system");
        assert!(export(&answers, ExportForm::Pairs).is_empty());
    }
}
