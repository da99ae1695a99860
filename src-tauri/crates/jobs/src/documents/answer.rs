//! Answers from documents: passages are found, a model is asked about them, and what it cites is checked.

use super::{DocumentSearch, check_query, exam::CitationExam};
use crate::{Jobs, exams::has_failed_or_begins};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeSet, mem};
use tierbar_core::{
    Code, Error, ModelKind, TierId, bad_request,
    documents::{Citation, DocumentAnswer, Passage, Reading},
    status::EngineKind,
};
use tierbar_documents::{
    answer::{
        CitedAnswer, INSTRUCTIONS, NOTES, QuotedPassage, SUMMARY, check_citations, has_words,
        is_not_found, question, summary, without_citations,
    },
    plan::{self, MOST_PARTS, plan},
};
use tierbar_inference::{ask::Event, caller::Caller, request::Request, source::Source};
use tierbar_store::MOST_ID;
use tierbar_tasks::{facts, fallback};
use tokio::sync::mpsc::UnboundedSender;
use utoipa::ToSchema;

/// Passages that an answer is made from, if the context holds them.
pub(super) const USUAL: usize = 6;
const ANSWER_TOKENS: u32 = 1024;
const NOTES_TOKENS: u32 = 320;
/// The assumed context of a tier that does not say, in tokens.
const USUAL_CONTEXT: u32 = 4096;
const DISTRUSTED: &str = "This model failed the test of citations, so its own were removed. The passages were chosen by rule: \
    check the answer against them.";
const CHOSEN: &str = "This model failed the test of citations. The passages were chosen by rule: check the answer against them.";
const BY_RULE: &str = "The model returned no words. These sentences share the most words with the question and were chosen by rule.";

/// A question about documents.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct DocumentQuestion {
    pub question: String,
    /// The collection to answer from; without one, all of them.
    pub collection: Option<String>,
    /// One document to answer from, by its id.
    pub file: Option<u64>,
    /// Whether the model reads that one document as a whole, in parts if it does not fit its context.
    #[serde(default)]
    pub whole: bool,
    /// A tier, a chain or a model's id. Without it, or with `auto`, a tier of this machine answers.
    pub model: Option<String>,
    /// How many passages are found. Default: 6.
    #[schema(minimum = 1, maximum = 50)]
    pub limit: Option<usize>,
    /// Whether the answer comes as server-sent events; the data of each is a `DocumentEvent`.
    #[serde(default)]
    pub stream: bool,
}

/// An event of an answer from documents. The last is `answer` or `error`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DocumentEvent {
    /// The passages that the model reads, by their numbers from 1.
    Passages { passages: Vec<Passage> },
    /// The part of a long document that is being read, from 1.
    Part { part: usize, parts: usize },
    /// More of the answer, whose citations are not checked yet.
    Text { text: String },
    /// The whole answer.
    Answer { answer: DocumentAnswer },
    Error {
        code: String,
        message: String,
        hint: Option<String>,
    },
}

/// Takes the events of an answer. The receiver may be gone.
pub(super) type Events = UnboundedSender<DocumentEvent>;

impl Jobs {
    /// Answers a question from documents.
    ///
    /// # Errors
    /// `NotFound` if nothing is there to answer from; whatever keeps the model from answering.
    pub async fn ask_documents(
        &self,
        asked: DocumentQuestion,
        events: &Events,
    ) -> Result<DocumentAnswer, Error> {
        check_query(&asked.question)?;
        if asked.whole {
            return self.ask_whole(&asked, events).await;
        }
        let search = DocumentSearch {
            query: asked.question.clone(),
            collection: asked.collection.clone(),
            file: asked.file,
            limit: Some(asked.limit.unwrap_or(USUAL)),
            rerank: None,
        };
        let mut passages = self.search_documents(&search).await?.passages;
        if passages.is_empty() {
            let message = "no passage of the documents has anything to do with the question";
            return Err(Error::new(Code::NotFound, message)
                .hint("add documents, or wait until they are read"));
        }
        let _ = events.send(DocumentEvent::Passages {
            passages: passages.clone(),
        });
        let (model, _) = self.reader(asked.model.as_deref(), false)?;
        loop {
            let message = question(&asked.question, 1, &quoted(&passages));
            match self.answer(&model, INSTRUCTIONS, message, events).await {
                // A small context holds fewer passages; the best are first.
                Err(error) if error.code == Code::ContextExceeded && passages.len() > 1 => {
                    passages.truncate(passages.len() / 2);
                }
                answered => {
                    let (question, answered) = (&asked.question, answered?);
                    return Ok(self
                        .complete(question, answered, &passages, Reading::Passages)
                        .await);
                }
            }
        }
    }

    /// Has a model read one document as a whole, or in parts that its context holds.
    async fn ask_whole(
        &self,
        asked: &DocumentQuestion,
        events: &Events,
    ) -> Result<DocumentAnswer, Error> {
        let Some(file) = asked.file else {
            let message = "a document that is read as a whole must be named";
            return Err(bad_request(message).hint("set `file` to its id"));
        };
        let file = file.min(MOST_ID);
        let size = self.store.document_size(file).await?;
        let _weight = self.charge_answer(usize::try_from(size).unwrap_or(usize::MAX))?;
        let passages = self.store.document_text(file).await?;
        let (model, context) = self.reader(asked.model.as_deref(), true)?;
        let texts = passages.iter().map(|passage| passage.text.as_str());
        let parts = match plan(texts, context as usize) {
            plan::ReadingPlan::Whole => {
                let message = question(&asked.question, 1, &quoted(&passages));
                let answered = self.answer(&model, INSTRUCTIONS, message, events).await?;
                let complete = self.complete(&asked.question, answered, &passages, Reading::Whole);
                return Ok(complete.await);
            }
            plan::ReadingPlan::Parts(parts) => parts,
            plan::ReadingPlan::TooLong(parts) => {
                let message = format!(
                    "the document would take {parts} parts of this model's context, and may take {MOST_PARTS}"
                );
                return Err(Error::new(Code::ContextExceeded, message)
                    .hint("ask without `whole`, or name a model with a larger context"));
            }
        };
        let mut notes = Vec::new();
        let count = parts.len();
        for (part, range) in (1..).zip(parts) {
            let _ = events.send(DocumentEvent::Part { part, parts: count });
            let (first, passages) = (range.start + 1, quoted(&passages[range]));
            let message = question(&asked.question, first, &passages);
            let request = request(&model, NOTES, message, NOTES_TOKENS)?;
            let answer = self.inference.ask(request, Caller::default()).await?;
            let note = answer.gather().await?.text;
            let note = note.trim();
            if !note.is_empty() && !note.to_lowercase().starts_with("nothing") {
                notes.push(note.to_owned());
            }
        }
        if notes.is_empty() {
            let answered = ModelAnswer {
                text: "The document does not say anything about it.".to_owned(),
                source: Source::default(),
            };
            let complete = self.complete(&asked.question, answered, &passages, Reading::Parts);
            return Ok(complete.await);
        }
        let message = summary(&asked.question, &notes);
        let answered = self.answer(&model, SUMMARY, message, events).await?;
        let complete = self.complete(&asked.question, answered, &passages, Reading::Parts);
        Ok(complete.await)
    }

    /// As [`complete`]. A model that has answered here for the first time is examined later.
    async fn complete(
        &self,
        question: &str,
        answered: ModelAnswer,
        passages: &[Passage],
        reading: Reading,
    ) -> DocumentAnswer {
        let cites_badly = match &answered.source.tier {
            Some(tier) => has_failed_or_begins::<CitationExam>(&self.inference, tier).await,
            None => false,
        };
        complete(question, answered, passages, reading, cites_badly)
    }

    /// Returns what answers, and its context in tokens: what the request names, or else a tier of this machine, so that no passage
    /// leaves it unasked. A whole document goes to the one with the largest context.
    pub(super) fn reader(&self, wanted: Option<&str>, whole: bool) -> Result<(String, u32), Error> {
        let tiers = self.inference.tiers.snapshot();
        let mut readers = tiers
            .iter()
            .filter(|tier| tier.kind == ModelKind::Chat && tier.model.is_some());
        if let Some(wanted) = wanted.filter(|wanted| !matches!(*wanted, "" | TierId::AUTO)) {
            let named = readers.find(|tier| {
                let model = tier.model.as_ref();
                model.is_some_and(|model| model.as_str() == wanted) || tier.id.as_str() == wanted
            });
            let context = named.map_or(0, |tier| tier.context_tokens);
            let context = if context > 0 { context } else { USUAL_CONTEXT };
            return Ok((wanted.to_owned(), context));
        }
        let best = readers
            .filter(|tier| tier.engine != EngineKind::Endpoint)
            .max_by_key(|tier| {
                let (is_loaded, context) = (tier.state.holds_memory(), tier.context_tokens);
                let is_usual = tier.id.as_str() == "primary";
                (whole.then_some(context), is_usual, is_loaded, context)
            });
        let best = best.ok_or_else(|| {
            let message = "no tier of this machine has a chat model";
            Error::new(Code::ModelMissing, message)
                .hint("assign one, or name a cloud's tier, which then gets the passages")
        })?;
        Ok((best.id.as_str().to_owned(), best.context_tokens.max(1024)))
    }

    async fn answer(
        &self,
        model: &str,
        instructions: &str,
        message: String,
        events: &Events,
    ) -> Result<ModelAnswer, Error> {
        let request = request(model, instructions, message, ANSWER_TOKENS)?;
        let mut answer = self.inference.ask(request, Caller::default()).await?;
        let mut answered = ModelAnswer::default();
        // Citations alone are replaced by another answer, so they are not sent.
        let (mut held, mut shows) = (String::new(), false);
        while let Some(event) = answer.next().await {
            match event {
                Event::Started(source) => answered.source = source,
                Event::Text(text) => {
                    answered.text.push_str(&text);
                    held.push_str(&text);
                    shows = shows || has_words(&answered.text);
                    if shows {
                        let text = mem::take(&mut held);
                        let _ = events.send(DocumentEvent::Text { text });
                    }
                }
                Event::Failed(failed) => return Err(failed.error),
                Event::Progress(_)
                | Event::Passed(_)
                | Event::Chain(_)
                | Event::Model(_)
                | Event::Sampling(_)
                | Event::Reasoning(_)
                | Event::ToolCall(_)
                | Event::LogProbs(_)
                | Event::Usage(_)
                | Event::Finished { .. } => {}
            }
        }
        Ok(answered)
    }
}

#[derive(Debug, Default)]
struct ModelAnswer {
    text: String,
    source: Source,
}

fn request(
    model: &str,
    instructions: &str,
    message: String,
    tokens: u32,
) -> Result<Request, Error> {
    let mut fields = request_fields(instructions, &message, tokens);
    fields["model"] = model.into();
    fields["temperature"] = 0.2.into();
    Request::streamed_chat(fields)
}

/// Returns a question in OpenAI's form, without a model.
pub(super) fn request_fields(instructions: &str, message: &str, tokens: u32) -> Value {
    json!({
        "messages": [
            {"role": "system", "content": instructions},
            {"role": "user", "content": message},
        ],
        "max_tokens": tokens,
        "temperature": 0,
        "think": false,
    })
}

fn quoted(passages: &[Passage]) -> Vec<QuotedPassage<'_>> {
    passages.iter().map(QuotedPassage::from).collect()
}

/// Checks what the answer cites. One without words is replaced by sentences of the passages, and so are the citations of a model that
/// is known to cite badly.
fn complete(
    question: &str,
    answered: ModelAnswer,
    passages: &[Passage],
    reading: Reading,
    cites_badly: bool,
) -> DocumentAnswer {
    let mut found = check_citations(answered.text.trim(), passages.len());
    let is_without_words = !has_words(&found.text);
    let is_distrusted = cites_badly && !is_without_words && !is_not_found(&found.text);
    let cites = !found.numbers.is_empty() || found.invented > 0;
    if is_without_words {
        found = answer_by_rule(question, &found.numbers, passages);
    } else if is_distrusted {
        found = CitedAnswer {
            numbers: answer_by_rule(question, &BTreeSet::new(), passages).numbers,
            text: without_citations(&found.text, passages.len()),
            ..found
        };
    }
    let notice = match (found.numbers.is_empty(), found.invented) {
        _ if found.text.is_empty() => Some("The model returned no words."),
        _ if is_without_words => Some(BY_RULE),
        _ if is_distrusted && cites => Some(DISTRUSTED),
        _ if is_distrusted => Some(CHOSEN),
        (true, 0) if is_not_found(&found.text) => None,
        (true, 0) => Some("The answer cites no passage, so check it against the documents."),
        (true, _) => {
            Some("The answer cited passages that do not exist, so check it against the documents.")
        }
        (false, 0) => None,
        (false, _) => {
            Some("The answer also cited passages that do not exist; those numbers were removed.")
        }
    };
    let citations = found.numbers.iter().filter_map(|&number| {
        let passage = passages.get(number.checked_sub(1)?)?.clone();
        Some(Citation { number, passage })
    });
    let citations: Vec<_> = citations.collect();
    let figures = unfounded_figures(question, &found.text, &citations);
    let unfounded = (!figures.is_empty()).then(|| {
        let figures = figures.join(", ");
        format!("Check these figures, which do not appear in the cited passages: {figures}.")
    });
    let notices: Vec<_> = (notice.map(str::to_owned).into_iter())
        .chain(unfounded)
        .collect();
    DocumentAnswer {
        citations,
        answer: found.text,
        reading,
        tier: answered.source.tier,
        model: answered.source.model,
        notice: (!notices.is_empty()).then(|| notices.join(" ")),
    }
}

/// Returns the numbers and dates of an answer that neither the question nor a cited passage has. A single digit may number a list.
fn unfounded_figures(question: &str, answer: &str, citations: &[Citation]) -> Vec<String> {
    if citations.is_empty() {
        return Vec::new();
    }
    let mut known = question.to_owned();
    for Citation { passage, .. } in citations {
        for text in [&passage.title, &passage.place(), &passage.text] {
            known.push('\n');
            known.push_str(text);
        }
    }
    let numbers = citations.iter().map(|citation| citation.number);
    let answer = without_citations(answer, numbers.max().unwrap_or_default());
    // Also of dates, whose months may have another language's names.
    let digits = |text: &str| -> BTreeSet<String> {
        let groups = text.split(|c: char| !c.is_ascii_digit());
        groups.map(str::to_owned).collect()
    };
    let known_digits = digits(&known);
    let mut missing = facts::compare(&answer, &known).missing;
    missing.retain(|fact| {
        let count = fact.bytes().filter(u8::is_ascii_digit).count();
        count > 1 && !digits(fact).is_subset(&known_digits)
    });
    missing
}

/// Answers with sentences of the passages, of those that are cited if any are.
fn answer_by_rule(question: &str, cited: &BTreeSet<usize>, passages: &[Passage]) -> CitedAnswer {
    let texts = (1..).zip(passages);
    let (numbers, texts): (Vec<usize>, Vec<&str>) = texts
        .filter(|(number, _)| cited.is_empty() || cited.contains(number))
        .map(|(number, passage)| (number, passage.text.as_str()))
        .unzip();
    let chosen = fallback::answer(question, &texts);
    let lines = chosen
        .iter()
        .map(|(place, sentence)| format!("{sentence} [{}]", numbers[*place]));
    CitedAnswer {
        text: lines.collect::<Vec<_>>().join("\n\n"),
        numbers: chosen.iter().map(|(place, _)| numbers[*place]).collect(),
        invented: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(id: u64) -> Passage {
        Passage {
            id,
            file: 1,
            path: "/a.pdf".into(),
            title: "A".into(),
            collection: "Documents".into(),
            headings: Vec::new(),
            page: Some(3),
            line: None,
            text: format!("The tower has {id} floors. It is old."),
            score: 0.0,
        }
    }

    fn completed(
        question: &str,
        text: &str,
        passages: &[Passage],
        cites_badly: bool,
    ) -> DocumentAnswer {
        let answered = ModelAnswer {
            text: text.to_owned(),
            source: Source::default(),
        };
        let reading = Reading::Passages;
        complete(question, answered, passages, reading, cites_badly)
    }

    #[test]
    fn only_citations_that_lead_somewhere_are_kept() {
        let passages = [passage(10), passage(11)];
        let of = |text: &str| completed("How many floors?", text, &passages, false);
        let answer = of("It is so [2]. Or so [5].");
        assert_eq!(answer.answer, "It is so [2]. Or so.");
        let cited: Vec<_> = answer
            .citations
            .iter()
            .map(|cited| (cited.number, cited.passage.id))
            .collect();
        assert_eq!(cited, [(2, 11)]);
        assert!(answer.notice.unwrap().contains("removed"));
        assert!(of("So it is.").notice.unwrap().contains("cites no passage"));
        assert_eq!(of("So it is [1].").notice, None);
        assert_eq!(of("The documents do not say it.").notice, None);
    }

    #[test]
    fn figures_that_no_cited_passage_has_are_named() {
        let passages = [passage(10), passage(11)];
        for (text, notice) in [
            ("It has 10 floors [1].", None),
            ("1. It has ten floors [1].\n2. The other has 11 [2].", None),
            ("In 1890 it had 10 floors [1].", None),
            ("It has 11 floors [1].", Some("11")),
            ("It opened on 13 May [1].", Some("13 May")),
            ("It opened on 10 May [1].", None),
            ("It has 10 floors [1] and is 3.5 km high.", Some("3.5")),
        ] {
            let made = completed("And in 1890?", text, &passages, false);
            let expected = notice.map(|figures| {
                format!(
                    "Check these figures, which do not appear in the cited passages: {figures}."
                )
            });
            assert_eq!(made.notice, expected, "{text}");
        }
    }

    #[test]
    fn an_answer_without_words_is_made_by_rule() {
        let passages = [passage(10), passage(11)];
        for (text, answer) in [
            ("[2]", "The tower has 11 floors. [2]"),
            (
                "",
                "The tower has 10 floors. [1]\n\nThe tower has 11 floors. [2]",
            ),
            (
                " [7]. ",
                "The tower has 10 floors. [1]\n\nThe tower has 11 floors. [2]",
            ),
        ] {
            let made = completed("How many floors?", text, &passages, false);
            assert_eq!(made.answer, answer, "{text}");
            assert_eq!(made.citations.len(), answer.matches('[').count(), "{text}");
            assert!(made.notice.unwrap().contains("by rule"), "{text}");
        }
    }

    #[test]
    fn a_model_that_cites_badly_keeps_its_words_alone() {
        let passages = [passage(10), passage(11)];
        let of = |text: &str| completed("How many floors, 11?", text, &passages, true);
        let made = of("Yes, it has 11 [1][7].");
        assert_eq!(made.answer, "Yes, it has 11.");
        let cited: Vec<_> = made.citations.iter().map(|cited| cited.number).collect();
        assert_eq!(cited, [1, 2]);
        assert_eq!(made.notice.as_deref(), Some(DISTRUSTED));
        let uncited = of("Yes, it has 11.");
        assert_eq!(uncited.citations.len(), 2);
        assert_eq!(uncited.notice.as_deref(), Some(CHOSEN));
        let silent = of("The documents do not say it.");
        assert_eq!((silent.citations.len(), silent.notice), (0, None));
        let bare = of("[2]");
        assert_eq!(bare.answer, "The tower has 11 floors. [2]");
    }
}
