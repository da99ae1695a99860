//! How models did in examinations, kept by their files, so that each is examined once.

use super::LocalModels;
use crate::{
    folder::MARKS,
    measured::{self, now},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};
use tierbar_core::{
    FileIdentity, ModelId,
    first_steps::FirstSteps,
    judgment::{ExamOutcome, Judgment, Mark},
};
use tierbar_fetch::blocking;
use tierbar_library::Entry;

/// A mark, and the result from which the examination's outcome is used again.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredMark {
    #[serde(flatten)]
    mark: Mark,
    result: Value,
}

impl StoredMark {
    fn new(file: FileIdentity<'_>, outcome: ExamOutcome) -> Self {
        let mark = Mark {
            judgment: outcome.judgment,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            taken_at: now(),
            model: file.model.clone(),
            size_bytes: file.size_bytes,
            modified: file.modified,
            sha256: file.sha256.map(str::to_owned),
            right: outcome.right,
            of: outcome.of,
            passed: outcome.passed,
            milliseconds: outcome.milliseconds,
            first_steps: FirstSteps::deserialize(&outcome.result).ok(),
        };
        Self {
            mark,
            result: outcome.result,
        }
    }

    fn into_outcome(self) -> ExamOutcome {
        ExamOutcome {
            judgment: self.mark.judgment,
            right: self.mark.right,
            of: self.mark.of,
            passed: self.mark.passed,
            milliseconds: self.mark.milliseconds,
            result: self.result,
        }
    }

    /// Whether another mark is of the same judgment and file.
    fn replaces(&self, known: &Self) -> bool {
        self.mark.title() == known.mark.title() && self.mark.file().is_same(known.mark.file())
    }
}

/// Returns the newest mark of each judgment of a file, without the results behind them.
pub(super) fn marks_of(stored: &[StoredMark], file: FileIdentity<'_>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    for StoredMark { mark, .. } in stored {
        // A file that has been hashed since may have two: by its hash, and by its name.
        let is_newer = marks.iter().all(|known| known.title() != mark.title());
        if is_newer && mark.file().is_same(file) {
            marks.push(mark.clone());
        }
    }
    marks
}

fn find_outcome(
    stored: Vec<StoredMark>,
    judgment: Judgment,
    file: FileIdentity<'_>,
) -> Option<ExamOutcome> {
    let is_wanted =
        |stored: &StoredMark| stored.mark.judgment == judgment && stored.mark.file().is_same(file);
    let found = stored.into_iter().find(is_wanted);
    found.map(StoredMark::into_outcome)
}

impl LocalModels {
    pub(super) async fn exam_outcome(
        &self,
        model: ModelId,
        judgment: Judgment,
    ) -> Option<ExamOutcome> {
        let models = Arc::clone(&self.config.models);
        let path = self.config.folder.file(MARKS);
        let read = blocking("reading how a model was examined", move || {
            let stored: Vec<StoredMark> = measured::read(&path);
            if stored.is_empty() {
                return Ok(None);
            }
            let found = models.find_entry(|spec| spec.model.as_ref() == Some(&model))?;
            Ok(found.and_then(|entry| find_outcome(stored, judgment, entry.identity())))
        });
        // What cannot be read is examined again.
        read.await.unwrap_or_default()
    }

    pub(super) async fn store_exam_outcome(&self, model: ModelId, outcome: ExamOutcome) -> bool {
        let models = Arc::clone(&self.config.models);
        let found = blocking("looking for the examined model", move || {
            models.find_entry(|spec| spec.model.as_ref() == Some(&model))
        });
        match found.await {
            Ok(Some(entry)) if self.config.models.is_replaced(&entry) => return false,
            Ok(Some(entry)) => {
                store_mark(self.config.folder.file(MARKS), &entry, outcome).await;
            }
            _ => {}
        }
        true
    }
}

/// Stores how a model's file did, in place of what was stored of the same judgment.
pub(crate) async fn store_mark(path: PathBuf, entry: &Entry, outcome: ExamOutcome) -> Mark {
    let stored = StoredMark::new(entry.identity(), outcome);
    let mark = stored.mark.clone();
    let (model, title, sentence) = (&mark.model, mark.title(), mark.sentence());
    tracing::info!("{model}: {title}: {sentence}");
    measured::store_newest(path, stored, StoredMark::replaces).await;
    mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{KEPT, add_newest, store_newest};
    use serde_json::json;
    use tierbar_core::first_steps::AgentScore;

    fn outcome(judgment: Judgment, right: u32) -> ExamOutcome {
        ExamOutcome {
            judgment,
            right,
            of: 16,
            passed: right >= 12,
            milliseconds: Some(200),
            result: json!({"right": right, "usual": [0.25, 0.5, 0.25]}),
        }
    }

    #[tokio::test]
    async fn a_mark_outlives_the_host_and_is_of_its_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MARKS);
        let small = ModelId("small".to_owned());
        let file = FileIdentity {
            model: &small,
            size_bytes: 100,
            modified: Some(7),
            sha256: Some("ab"),
        };
        for (judgment, right) in [
            (Judgment::Triage, 3),
            (Judgment::Routing, 12),
            (Judgment::Triage, 7),
        ] {
            let stored = StoredMark::new(file, outcome(judgment, right));
            store_newest(path.clone(), stored, StoredMark::replaces).await;
        }
        let find = |judgment, file| find_outcome(measured::read(&path), judgment, file);
        let triage = outcome(Judgment::Triage, 7);
        assert_eq!(find(Judgment::Triage, file), Some(triage.clone()));
        let routing = outcome(Judgment::Routing, 12);
        assert_eq!(find(Judgment::Routing, file), Some(routing));
        for replaced in [
            FileIdentity {
                sha256: Some("cd"),
                ..file
            },
            FileIdentity {
                size_bytes: 101,
                sha256: None,
                ..file
            },
            FileIdentity {
                modified: Some(8),
                sha256: None,
                ..file
            },
        ] {
            assert_eq!(find(Judgment::Triage, replaced), None, "{replaced:?}");
        }
        let moved = ModelId("moved".to_owned());
        let moved = FileIdentity {
            model: &moved,
            ..file
        };
        assert_eq!(find(Judgment::Triage, moved), Some(triage));

        let shown = marks_of(&measured::read::<Vec<StoredMark>>(&path), file);
        let scores: Vec<_> = shown
            .iter()
            .map(|mark| (mark.judgment, mark.right))
            .collect();
        assert_eq!(scores, [(Judgment::Triage, 7), (Judgment::Routing, 12)]);
        let shown = serde_json::to_value(&shown).unwrap();
        assert_eq!(shown[0].get("result"), None);
    }

    #[test]
    fn first_steps_are_stored_with_thinking_and_without() {
        fn file(model: &ModelId) -> FileIdentity<'_> {
            FileIdentity {
                model,
                size_bytes: 1,
                modified: None,
                sha256: None,
            }
        }
        let steps = |thinking, right| {
            let score = AgentScore {
                right,
                milliseconds: 900,
            };
            FirstSteps {
                thinking,
                calls: score,
                text: score,
            }
        };
        let mut stored = Vec::new();
        let small = ModelId("small".to_owned());
        for (thinking, right) in [(false, 1), (true, 3), (false, 4)] {
            let newest = StoredMark::new(file(&small), steps(thinking, right).outcome(12));
            stored = add_newest(stored, newest, StoredMark::replaces);
        }
        let marks = marks_of(&stored, file(&small));
        let shown: Vec<_> = marks.iter().map(|mark| mark.first_steps.unwrap()).collect();
        assert_eq!(shown, [steps(false, 4), steps(true, 3)]);
        for number in 0..KEPT {
            let other = ModelId(number.to_string());
            let newest = StoredMark::new(file(&other), outcome(Judgment::Triage, 7));
            stored = add_newest(stored, newest, StoredMark::replaces);
        }
        assert_eq!(stored.len(), KEPT);
    }
}
