//! Media in prompts. Their rows are evaluated in steps of their own, between those of tokens.

use super::{GenerationBatch, RunningTask};
use crate::llama::{DecodeOutcome, RowPositions};
use std::{sync::Arc, time::Instant};

/// Rows for a prompt, in place of its stand-ins.
#[derive(Debug)]
pub(crate) struct Media {
    /// Where in the prompt.
    pub(crate) start: usize,
    /// The rows, one after another.
    pub(crate) rows: Arc<[f32]>,
    /// Of each row.
    pub(crate) places: Vec<RowPositions>,
    /// Whether they attend to each other, so that they must be evaluated in one batch.
    pub(crate) whole: bool,
}

impl Media {
    pub(super) fn end(&self) -> usize {
        self.start + self.places.len()
    }

    /// Returns whether some of its rows share a position in the sequence.
    fn is_joined(&self) -> bool {
        let mut pairs = self.places.windows(2);
        pairs.any(|pair| pair[0][0] == pair[1][0])
    }
}

impl GenerationBatch<'_> {
    /// Returns whose medium is next, if it is a medium's turn: never twice in a row while there are tokens to evaluate.
    pub(super) fn media_due(&mut self) -> Option<usize> {
        let at_media = |one: &RunningTask| one.task.media_at(self.slots.held(one.slot)).is_some();
        let tokens_wait = !self.running.iter().all(at_media);
        let due = self.running.iter().position(at_media);
        let due = due.filter(|_| !(tokens_wait && self.was_media));
        self.was_media = due.is_some();
        due
    }

    /// One evaluation of a medium's rows.
    pub(super) fn read_media(&mut self, at: usize) {
        let held = self.slots.held(self.running[at].slot);
        let RunningTask { slot, task } = &self.running[at];
        let slot = *slot;
        let Some(media) = task.media_at(held) else {
            return;
        };
        if media.whole && held > media.start {
            // Only its start is cached, which is of no use.
            self.slots.clear(slot);
            return;
        }
        let room = self.slots.context.batch;
        // Interrupting one evaluation would lose all rows before it: llama.cpp removes by position.
        let joined = media.is_joined();
        if joined {
            self.interrupt.forbid();
        }
        let count = if media.whole {
            media.places.len()
        } else {
            let chunk = if self.running.len() > 1 || joined || !self.is_interruptible() {
                self.pace.chunk(room)
            } else {
                room
            };
            chunk.min(media.end() - held)
        };
        let (offset, whole) = (held - media.start, media.whole);
        let width = media.rows.len() / media.places.len().max(1);
        let rows = Arc::clone(&media.rows);
        let rows = &rows[offset * width..(offset + count) * width];
        let places = &media.places[offset..offset + count];
        let tokens = &task.tokens[held..held + count];
        let started = Instant::now();
        self.slots.context.set_embeddings(false);
        match self.slots.context.decode_rows(slot, rows, places, whole) {
            Ok(DecodeOutcome::Done) => {
                self.pace.observe(count, started.elapsed());
                self.slots.extend(slot, tokens);
            }
            Ok(DecodeOutcome::Aborted) => self.slots.recover(slot),
            Ok(DecodeOutcome::NoRoom) => {
                self.slots.recover(slot);
                self.free_cells();
            }
            Err(error) => self.fail_all(&error),
        }
    }
}
