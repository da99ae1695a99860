use crate::{
    Level,
    classifier::{Exam, Opinion, PROBES, question},
};
use serde_json::{Value, json};

fn answer(content: &str, tokens: &[(&str, f64)]) -> Value {
    let top: Vec<_> = tokens
        .iter()
        .map(|(token, probability)| json!({"token": token, "logprob": probability.ln()}))
        .collect();
    json!({"choices": [{"message": {"content": content}, "logprobs": {"content": [{"top_logprobs": top}]}}]})
}

/// A model that gives the right word `truth` of its weight, and each word its `bias` whatever it reads.
fn model(truth: f64, bias: [f64; 3]) -> [Opinion; PROBES.len()] {
    PROBES.map(|(_, level)| opinion(truth, bias, level))
}

fn opinion(truth: f64, bias: [f64; 3], level: Level) -> Opinion {
    let words = Level::ALL.map(|one| {
        let place = Level::ALL.iter().position(|other| *other == one).unwrap();
        let own = if one == level { truth } else { 0.0 };
        (one.word(), bias[place] + own)
    });
    Opinion::from_answer(&answer("simple", &words)).unwrap()
}

#[test]
fn a_label_is_read_from_first_token_probabilities() {
    let read = Opinion::from_answer(&answer(
        "hard",
        &[
            ("hard", 0.3),
            (" h", 0.1),
            ("med", 0.1),
            ("The", 0.4),
            ("", 0.1),
        ],
    ));
    let (level, margin) = read.unwrap().first();
    assert_eq!(level, Level::Hard);
    assert!((margin - 0.6).abs() < 1e-9, "{margin}");

    let word_alone = json!({"choices": [{"message": {"content": " Medium."}}]});
    assert_eq!(
        Opinion::from_answer(&word_alone).unwrap().first(),
        (Level::Medium, 1.0)
    );
    for nothing in [
        json!({}),
        json!({"choices": [{"message": {"content": "yes"}}]}),
    ] {
        assert_eq!(Opinion::from_answer(&nothing), None);
    }
}

#[test]
fn a_models_bias_is_calibrated_away() {
    // It answers "hard" to everything, and a little more often where that is right.
    let bias = [0.05, 0.1, 0.6];
    let exam = Exam::from_opinions(&model(0.1, bias));
    assert!(exam.is_passed(), "{exam:?}");
    let simple = opinion(0.1, bias, Level::Simple);
    assert_eq!(simple.first().0, Level::Hard);
    assert_eq!(exam.weigh(simple).first().0, Level::Simple);
}

#[test]
fn a_model_that_fails_the_probes_is_not_trusted() {
    let exam = Exam::from_opinions(&model(0.0, [0.2, 0.5, 0.3]));
    assert!(!exam.is_passed());
    assert_eq!(exam.believed(opinion(1.0, [0.0; 3], Level::Hard)), None);
}

#[test]
fn a_calibrated_model_is_trusted_where_it_is_sure() {
    let exam = Exam::from_opinions(&model(0.5, [0.1; 3]));
    assert_eq!(exam.right, PROBES.len());
    let hard = opinion(0.5, [0.1; 3], Level::Hard);
    assert_eq!(exam.believed(hard), Some(Level::Hard));
    assert_eq!(exam.believed(opinion(0.02, [0.3; 3], Level::Hard)), None);
}

#[test]
fn a_classifier_question_has_both_ends_on_one_line() {
    let text = format!("begin\n{}end", "ä ".repeat(100_000));
    let question = question(&text);
    let content = question["messages"][0]["content"].as_str().unwrap();
    assert!(content.len() < 4000);
    assert!(content.contains("Request: begin ä") && content.ends_with("end\nWord:"));
}
