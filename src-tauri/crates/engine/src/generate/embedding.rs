//! Embeddings: their normalization, and the engine thread of a model for embeddings or reranking.

use super::{Generations, Job, JobEvent, JobGoal, increment};
use crate::{
    llama::{Batch, Context, DecodeOutcome, Interrupt, Model, Pooling, Sequence, Token},
    pause::Pause,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};
use tierbar_core::{Code, Error};

/// One for each job.
type Vectors = Vec<Result<Vec<f32>, Error>>;

/// Returns the vector scaled to length 1.
///
/// # Errors
/// [`Code::Internal`] for a vector without a direction.
pub(super) fn normalize_vector(vector: Option<&[f32]>) -> Result<Vec<f32>, Error> {
    let none = || Error::new(Code::Internal, "the model gave no embedding");
    let vector = vector.ok_or_else(none)?;
    let squares = vector.iter().map(|&each| f64::from(each).powi(2));
    let length = squares.sum::<f64>().sqrt();
    if !length.is_normal() {
        return Err(none());
    }
    let shortened = vector.iter().map(|&each| f64::from(each) / length);
    Ok(shortened.map(|each| each as f32).collect())
}

/// Returns the score, as a vector of one number.
///
/// # Errors
/// [`Code::Internal`] for what is no number.
fn score_vector(score: Option<f32>) -> Result<Vec<f32>, Error> {
    match score.filter(|score| score.is_finite()) {
        Some(score) => Ok(vec![score]),
        None => Err(Error::new(Code::Internal, "the model gave no score")),
    }
}

/// Embeds prompts until all senders are dropped, as many per evaluation as fit. Nothing is cached.
pub(crate) fn run_pooled(
    model: &Model,
    pooling: Pooling,
    context: Context,
    pause: &Pause,
    jobs: &mpsc::Receiver<Job>,
    generations: &Generations,
) {
    let mut embedder = Embedder {
        pooling,
        interrupt: context.interrupt(),
        interruptible: model.is_interruptible(),
        context,
        largest: 0,
        waiting: VecDeque::new(),
        batch: Batch::default(),
        pause,
        generations,
    };
    loop {
        if embedder.waiting.is_empty() {
            match jobs.recv() {
                Ok(job) => embedder.waiting.push_back(job),
                Err(_) => return,
            }
        }
        let most = embedder.context.sequences;
        while embedder.waiting.len() < most
            && let Ok(job) = jobs.try_recv()
        {
            embedder.waiting.push_back(job);
        }
        embedder.step();
    }
}

struct Embedder<'a> {
    pooling: Pooling,
    context: Context,
    interrupt: Arc<Interrupt>,
    interruptible: bool,
    /// The tokens of the largest batch so far.
    largest: usize,
    /// The next one first.
    waiting: VecDeque<Job>,
    batch: Batch,
    pause: &'a Pause,
    generations: &'a Generations,
}

impl Embedder<'_> {
    /// Embeds the first waiting job, and following ones that fit beside it.
    fn step(&mut self) {
        self.interrupt.arm(self.interruptible);
        let pause = self.pause;
        let wanted = || {
            self.drop_cancelled();
            !self.waiting.is_empty()
        };
        if !pause.wait(wanted) {
            return;
        }
        let mut taken = 0;
        let mut tokens = 0;
        for job in &self.waiting {
            tokens += job.prompt.len();
            if taken > 0 && tokens > self.context.batch {
                break;
            }
            taken += 1;
        }
        let taken: Vec<_> = self.waiting.drain(..taken).collect();
        store_count(&self.generations.running, taken.len());
        let vectors = self.embed(&taken);
        for (sequence, _) in (0..).zip(&taken) {
            self.context.clear(sequence);
        }
        store_count(&self.generations.running, 0);
        match vectors {
            // Cancelled jobs are dropped in the next step.
            Ok(None) => taken
                .into_iter()
                .rev()
                .for_each(|job| self.waiting.push_front(job)),
            Ok(Some(vectors)) => {
                for (job, vector) in taken.iter().zip(vectors) {
                    self.send(job, vector);
                }
            }
            Err(error) => {
                for job in &taken {
                    self.send(job, Err(error.clone()));
                }
            }
        }
    }

    fn drop_cancelled(&mut self) {
        self.waiting.retain(|job| {
            let gone = job.cancel.load(Ordering::Acquire);
            if gone {
                increment(&self.generations.cancelled);
            }
            !gone
        });
    }

    fn send(&self, job: &Job, vector: Result<Vec<f32>, Error>) {
        let (counter, event) = match vector {
            Ok(vector) => (&self.generations.done, JobEvent::Embedded(vector)),
            Err(error) => (&self.generations.failed, JobEvent::Failed(error)),
        };
        increment(counter);
        // A client that left is detected by its flag.
        let _gone = job.events.send((job.index, event));
    }

    /// `None`: it was interrupted. Each job has a sequence of its own, by its place.
    fn embed(&mut self, jobs: &[Job]) -> Result<Option<Vectors>, Error> {
        if let Some(other) = jobs.iter().find(|job| !matches!(job.goal, JobGoal::Embed)) {
            let message = format!("an embedding model cannot run {:?}", other.goal);
            return Err(Error::new(Code::Internal, message));
        }
        // Only a single text may be longer than an evaluation, and only if it can be split.
        let pieces = jobs[0].prompt.len().div_ceil(self.context.batch);
        for piece in 0..pieces.max(1) {
            self.batch.clear();
            for (sequence, job) in (0..).zip(jobs) {
                self.push(sequence, &job.prompt, piece);
            }
            let tokens = self.batch.len();
            match self.context.decode(&mut self.batch)? {
                DecodeOutcome::Done if self.pooling.takes_whole() && tokens > self.largest => {
                    self.context.release_logits(tokens);
                    self.largest = tokens;
                }
                DecodeOutcome::Done => {}
                DecodeOutcome::Aborted => return Ok(None),
                DecodeOutcome::NoRoom => {
                    let message = "the context has no room for a text that should fit";
                    return Err(Error::new(Code::Internal, message));
                }
            }
        }
        let pooled = |(sequence, _)| match self.pooling {
            Pooling::Rank => score_vector(self.context.score(sequence)),
            _ => normalize_vector(self.context.pooled(sequence)),
        };
        Ok(Some((0..).zip(jobs).map(pooled).collect()))
    }

    fn push(&mut self, sequence: Sequence, prompt: &[Token], piece: usize) {
        debug_assert!(piece == 0 || !self.pooling.takes_whole());
        let size = self.context.batch;
        let start = piece * size;
        let end = prompt.len().min(start + size);
        let positions = i32::try_from(start).unwrap_or(i32::MAX)..;
        for (&token, position) in prompt[start..end].iter().zip(positions) {
            self.batch.push(token, position, sequence, true);
        }
    }
}

fn store_count(counter: &AtomicUsize, value: usize) {
    counter.store(value, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_normalized_and_a_zero_one_refused() {
        assert_eq!(normalize_vector(Some(&[3.0, -4.0])).unwrap(), [0.6, -0.8]);
        assert_eq!(normalize_vector(Some(&[1e-30, 0.0])).unwrap(), [1.0, 0.0]);
        assert_eq!(normalize_vector(Some(&[1e30, 0.0])).unwrap(), [1.0, 0.0]);
        for lost in [None, Some(&[0.0, 0.0][..]), Some(&[f32::NAN, 1.0])] {
            assert_eq!(normalize_vector(lost).unwrap_err().code, Code::Internal);
        }
    }
}
