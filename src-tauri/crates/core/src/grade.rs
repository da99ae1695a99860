//! Grades of answers: good or bad, with a reason. What they show of models, and their export for training.

use crate::{
    chat::settings::AnswerSettings,
    routing::{
        Level,
        learned::{ENOUGH, GOOD, Learned, LearnedLevel, POOR},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most characters of a reason.
pub const MOST_WHY: usize = 2000;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum GradeVerdict {
    Good,
    Bad,
}

/// What the owner thinks of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Grade {
    pub verdict: GradeVerdict,
    /// Why, in the owner's words.
    #[serde(default)]
    pub why: Option<String>,
}

impl Grade {
    /// Returns the grade without blanks around its reason, and without an empty reason.
    ///
    /// # Errors
    /// Says that the reason is too long.
    pub fn checked(self) -> Result<Self, String> {
        let why = self.why.as_deref().map(str::trim);
        let why = why.filter(|why| !why.is_empty()).map(str::to_owned);
        let length = why.as_ref().map_or(0, |why| why.chars().count());
        if length > MOST_WHY {
            return Err(format!(
                "the reason has {length} characters and can have {MOST_WHY}"
            ));
        }
        Ok(Self { why, ..self })
    }
}

/// How many answers were graded, by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GradeCounts {
    pub good: u64,
    pub bad: u64,
}

impl GradeCounts {
    /// Returns the number of grades.
    #[must_use]
    pub fn total(self) -> u64 {
        self.good.saturating_add(self.bad)
    }

    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            good: self.good.saturating_add(more.good),
            bad: self.bad.saturating_add(more.bad),
        }
    }

    /// Returns the share of good ones, and the interval in which the true share lies at a confidence of 95 %, each from 0 to 1;
    /// `None` without grades.
    ///
    /// The interval is Wilson's (E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927), which
    /// holds for few grades too.
    #[must_use]
    pub fn share(self) -> Option<Share> {
        const Z: f64 = 1.959_964;
        if self.total() == 0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let (good, all) = (self.good as f64, self.total() as f64);
        let good = good / all;
        let squared = Z * Z / all;
        let middle = (good + squared / 2.0) / (1.0 + squared);
        let half = Z * (good * (1.0 - good) / all + squared / (4.0 * all)).sqrt() / (1.0 + squared);
        Some(Share {
            good,
            low: (middle - half).max(0.0),
            high: (middle + half).min(1.0),
        })
    }
}

/// A share of good answers, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Share {
    pub good: f64,
    /// The lower end of the interval in which the true share lies, at a confidence of 95 %.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The grades of one model's answers as one tier, to requests of one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GradeGroup {
    #[schema(required = true)]
    pub model: Option<String>,
    #[schema(required = true)]
    pub tier: Option<String>,
    /// How the model is quantized, where that is known.
    #[schema(required = true)]
    pub quant: Option<String>,
    /// How hard the question is, by the rules of `auto`.
    pub level: Level,
    pub counts: GradeCounts,
    /// Those of them that `auto` learns from: given since the last reset.
    pub learned: GradeCounts,
    /// `null` without grades.
    #[schema(required = true)]
    pub share: Option<Share>,
}

/// The rates of graded answers, and what `auto` has learned from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GradeReport {
    /// All grades.
    pub counts: GradeCounts,
    /// `null` without grades.
    #[schema(required = true)]
    pub share: Option<Share>,
    /// By model, tier and level; the most graded first.
    pub groups: Vec<GradeGroup>,
    pub routing: LearnedRouting,
}

/// What `auto` has learned from grades, and the bounds of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LearnedRouting {
    pub levels: Vec<LearnedLevel>,
    /// Grades of one level by one tier, before which nothing changes.
    pub enough: u64,
    /// If the share of good answers is surely below this, the next larger tier answers.
    pub poor: f64,
    /// If the share of good answers of the next smaller tier is surely above this, that tier answers.
    pub good: f64,
}

impl GradeReport {
    #[must_use]
    pub fn of(groups: Vec<GradeGroup>) -> Self {
        let counts = groups
            .iter()
            .fold(GradeCounts::default(), |sum, group| sum.plus(group.counts));
        let routing = LearnedRouting {
            levels: Learned::of(&groups).levels().to_vec(),
            enough: ENOUGH,
            poor: POOR,
            good: GOOD,
        };
        Self {
            counts,
            share: counts.share(),
            groups,
            routing,
        }
    }
}

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

/// Returns the lines of an export, one JSON object each.
#[must_use]
pub fn export(answers: &[GradedAnswer], form: ExportForm) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut paired = vec![false; answers.len()];
    if form != ExportForm::Labels {
        let bad = places_of(answers, GradeVerdict::Bad);
        for (question, places) in places_of(answers, GradeVerdict::Good) {
            for (place, other) in pairs(&places, bad.get(&question)) {
                // Under other instructions, the prompt was another one.
                if answers[place].settings.instructions == answers[other].settings.instructions {
                    (paired[place], paired[other]) = (true, true);
                    lines.push(pair(&answers[place], &answers[other]));
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

/// A chat, and a message in it.
type Question<'a> = (&'a str, u64);

/// The places of the answers with a verdict, by the question that they answer.
fn places_of(
    answers: &[GradedAnswer],
    verdict: GradeVerdict,
) -> BTreeMap<Question<'_>, Vec<usize>> {
    let mut places: BTreeMap<Question<'_>, Vec<usize>> = BTreeMap::new();
    for (place, answer) in answers.iter().enumerate() {
        if let Some(question) = answer.question.filter(|_| answer.grade.verdict == verdict) {
            let of_question = places.entry((answer.chat.as_str(), question)).or_default();
            of_question.push(place);
        }
    }
    places
}

/// Each of the first with each of the others.
fn pairs(first: &[usize], others: Option<&Vec<usize>>) -> Vec<(usize, usize)> {
    let others = others.map_or(&[][..], Vec::as_slice);
    let pairs = first
        .iter()
        .flat_map(|one| others.iter().map(|other| (*one, *other)));
    pairs.collect()
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

    fn counts(good: u64, bad: u64) -> GradeCounts {
        GradeCounts { good, bad }
    }

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
    fn a_share_has_the_interval_of_wilson() {
        assert_eq!(GradeCounts::default().share(), None);
        // Computed by hand from the formula.
        for (counts, good, low, high) in [
            (counts(8, 2), 0.8, 0.490, 0.943),
            (counts(0, 5), 0.0, 0.0, 0.434),
            (counts(1, 0), 1.0, 0.207, 1.0),
            (counts(50, 50), 0.5, 0.404, 0.596),
        ] {
            let share = counts.share().unwrap();
            let near = |one: f64, other: f64| (one - other).abs() < 0.001;
            assert!(near(share.good, good), "{share:?}");
            assert!(near(share.low, low) && near(share.high, high), "{share:?}");
        }
    }

    #[test]
    fn a_reason_is_trimmed_and_bounded() {
        let grade = |why: &str| Grade {
            verdict: GradeVerdict::Bad,
            why: Some(why.to_owned()),
        };
        assert_eq!(grade(" \n").checked().unwrap().why, None);
        assert_eq!(grade(" Wrong. ").checked(), Ok(grade("Wrong.")));
        assert!(grade(&"é".repeat(MOST_WHY)).checked().is_ok());
        assert!(grade(&"é".repeat(MOST_WHY + 1)).checked().is_err());
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
