//! The engine thread: owns the context and advances all running generations together, step by step.
//!
//! - A step is one evaluation of at most a micro-batch: one token for every stream, and the rest divided among the prompts,
//!   short ones first. While a stream runs, a step reads only as much of a prompt as takes about 50 ms (`shares`).
//! - Slots share all cells, so one slot may use the whole context while the others don't. When cells run short, old
//!   conversations are dropped first. Then the generation that started last yields its slot, and continues later.
//! - A model that cannot go back (sliding window, recurrent state) continues from checkpoints of its state.

mod embedding;
mod evaluation;
mod job;
mod media;
mod shares;
mod slots;
mod speculation;
mod task;

pub(crate) use embedding::run_pooled;
pub(crate) use job::{
    AnswerParams, AnswerRules, AnswerSummary, FinishReason, Job, JobEvent, JobGoal, ScoredPrompt,
    Timings, WrittenState, check_fits, too_long_error,
};
pub(crate) use media::Media;
pub(crate) use speculation::{Drafter, MOST as MOST_DRAFTED};
pub(crate) use task::{Candidate, TokenReport};

use crate::{
    llama::{Batch, Context, DecodeOutcome, Interrupt, Model, Token},
    pause::Pause,
    swap::ConversationSwap,
    trims::TrimRequests,
};
use serde::Serialize;
use shares::PrefillPace;
use slots::{Seat, Slots};
use speculation::{DraftingPolicy, Exactness};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    time::Instant,
};
use task::{GenerationTask, NextStep};
use tierbar_core::{Code, Error};

/// Counts running generations and how earlier ones ended, for `/props`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Generations {
    running: AtomicUsize,
    done: AtomicU64,
    /// Generations whose client disconnected.
    cancelled: AtomicU64,
    failed: AtomicU64,
    /// Drafted tokens, and those that the model accepted.
    drafted: AtomicU64,
    accepted: AtomicU64,
    /// Whether drafting is paused because it does not pay.
    drafting_rests: AtomicBool,
    /// Whether evaluating several tokens rounds differently from one, so that greedy answers had no drafts.
    drafts_differ: AtomicBool,
}

/// A generation starts only if this many tokens fit beside the running ones.
const HEADROOM: usize = 64;

/// What the host can request besides answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Controls<'a> {
    pub(crate) pause: &'a Pause,
    pub(crate) trims: &'a TrimRequests,
    /// Set if conversations are saved at the end.
    pub(crate) swap: Option<&'a ConversationSwap>,
}

/// Runs jobs until all senders are dropped or the process ends.
pub(crate) fn run_generations(
    model: &Arc<Model>,
    context: Context,
    drafter: Option<Drafter>,
    jobs: &mpsc::Receiver<Job>,
    generations: &Generations,
    controls: Controls<'_>,
) {
    let mut batching = GenerationBatch {
        controls,
        model,
        interrupt: context.interrupt(),
        slots: Slots::new(model, context),
        running: Vec::new(),
        waiting: VecDeque::new(),
        batch: Batch::default(),
        pace: PrefillPace::default(),
        drafter,
        policy: DraftingPolicy::default(),
        exactness: Exactness::default(),
        was_media: false,
        generations,
    };
    loop {
        if let Some(swap) = batching.swap_requested() {
            batching.slots.swap_out(swap);
            swap.exit();
        }
        batching.trim();
        if batching.is_idle() {
            match jobs.recv() {
                Ok(job) => batching.take(job),
                Err(_) => return,
            }
        }
        // The rest waits in the channel, whose capacity bounds the queue.
        while batching.waiting.is_empty()
            && let Ok(job) = jobs.try_recv()
        {
            batching.take(job);
            batching.admit();
        }
        batching.step();
    }
}

#[derive(Debug)]
struct RunningTask {
    slot: usize,
    task: GenerationTask,
}

/// The running generations and their shared context.
struct GenerationBatch<'a> {
    controls: Controls<'a>,
    model: &'a Arc<Model>,
    interrupt: Arc<Interrupt>,
    slots: Slots,
    /// The oldest first.
    running: Vec<RunningTask>,
    /// Generations without a slot or room, the next one first.
    waiting: VecDeque<GenerationTask>,
    batch: Batch,
    pace: PrefillPace,
    drafter: Option<Drafter>,
    policy: DraftingPolicy,
    exactness: Exactness,
    /// Whether the last step was a medium's.
    was_media: bool,
    generations: &'a Generations,
}

impl<'a> GenerationBatch<'a> {
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    fn take(&mut self, job: Job) {
        // The client disconnected while the job waited.
        if job.cancel.load(Ordering::Relaxed) {
            if !job.prompt.is_empty() {
                increment(&self.generations.cancelled);
            }
            return;
        }
        if let JobGoal::SaveLatest(draft) = job.goal {
            let written = self.slots.save_latest(draft);
            let event =
                written.map_or_else(JobEvent::Failed, |written| JobEvent::Saved(written, None));
            let _gone = job.events.send((job.index, event));
            return;
        }
        self.waiting.push_back(GenerationTask::new(self.model, job));
    }

    /// Returns where to keep the conversations, once the process is to end.
    fn swap_requested(&self) -> Option<&'a ConversationSwap> {
        self.controls.swap.filter(|swap| swap.is_requested())
    }

    fn trim(&mut self) {
        for reply in self.controls.trims.take() {
            let _gone = reply.send(self.slots.trim());
        }
    }

    /// Runs one evaluation and handles its tokens.
    fn step(&mut self) {
        self.interrupt.arm(self.is_interruptible());
        // Checked after arming: a request from before would not interrupt the evaluation.
        if self.swap_requested().is_some() {
            return;
        }
        let pause = self.controls.pause;
        let wanted = || {
            self.drop_cancelled();
            self.trim();
            !self.is_idle()
        };
        if !pause.wait(wanted) {
            return;
        }
        self.admit();
        self.make_room();
        self.count_running();
        if let Some(at) = self.media_due() {
            self.read_media(at);
            self.count_running();
            return;
        }
        let started = Instant::now();
        let mut shares = self.fill();
        if shares.is_empty() {
            return;
        }
        let mut decoded = self.slots.context.decode(&mut self.batch);
        if matches!(decoded, Ok(DecodeOutcome::Done)) {
            decoded = self.check(&mut shares);
        }
        match decoded {
            Ok(DecodeOutcome::Done) => {
                let took = started.elapsed();
                self.pace.observe(self.batch.len(), took);
                self.settle(&shares, took);
            }
            Ok(DecodeOutcome::Aborted) => self.recover(&shares),
            Ok(DecodeOutcome::NoRoom) => {
                self.recover(&shares);
                self.free_cells();
            }
            Err(error) => self.fail_all(&error),
        }
        self.count_running();
    }

    fn drop_cancelled(&mut self) {
        let before = self.running.len() + self.waiting.len();
        let cancelled = |one: &mut RunningTask| one.task.is_cancelled();
        for RunningTask { slot, .. } in self.running.extract_if(.., cancelled) {
            self.slots.leave(slot);
        }
        self.waiting.retain(|task| !task.is_cancelled());
        self.count_running();
        for _ in self.running.len() + self.waiting.len()..before {
            increment(&self.generations.cancelled);
        }
    }

    fn count_running(&self) {
        let running = self.running.len();
        self.generations.running.store(running, Ordering::Relaxed);
    }

    /// Gives idle slots to waiting generations, in order.
    fn admit(&mut self) {
        while let Some(task) = self.waiting.front()
            && self.slots.has_idle()
        {
            let promised: usize = self.running.iter().map(|one| one.task.tokens.len()).sum();
            let wanted = promised + task.tokens.len() + HEADROOM;
            if !self.running.is_empty() && wanted > self.slots.capacity() {
                return;
            }
            let began = Instant::now();
            let Some(Seat { slot, unrestored }) = self.slots.seat(&task.wanted()) else {
                return;
            };
            let Some(mut task) = self.waiting.pop_front() else {
                return;
            };
            let held = self.slots.held(slot);
            task.seated(held, began);
            let is_held = held == task.tokens.len();
            let is_load = matches!(task.job.goal, JobGoal::Load);
            self.running.push(RunningTask { slot, task });
            let end = match (is_held, is_load) {
                (true, _) => Ok(NextStep::Held),
                (false, false) => continue,
                (false, true) => Err(unrestored.unwrap_or_else(|| {
                    Error::new(Code::Internal, "the saved context was not restored")
                })),
            };
            self.end(vec![(self.running.len() - 1, end)]);
        }
    }

    /// Makes room for one more step: evicts old conversations first, then suspends the youngest generation.
    fn make_room(&mut self) {
        while !self
            .slots
            .has_room(self.wanted().min(self.slots.context.batch))
        {
            if !self.slots.evict() && !self.suspend_youngest() {
                return;
            }
        }
    }

    fn wanted(&self) -> usize {
        self.running.iter().map(|one| self.pending(one).len()).sum()
    }

    /// Frees cells after an evaluation found too few, or gives up.
    fn free_cells(&mut self) {
        if !self.slots.evict() && !self.suspend_youngest() {
            let message = "the KV cache has no room for tokens that should fit";
            self.fail_all(&Error::new(Code::Internal, message));
        }
    }

    /// Suspends the youngest generation, which resumes later. Returns `false` if it is the only one.
    fn suspend_youngest(&mut self) -> bool {
        if self.running.len() < 2 {
            return false;
        }
        if let Some(RunningTask { slot, task }) = self.running.pop() {
            self.slots.clear(slot);
            self.slots.leave(slot);
            self.waiting.push_front(task);
        }
        true
    }

    fn pending<'t>(&self, running: &'t RunningTask) -> &'t [Token] {
        &running.task.tokens[self.slots.held(running.slot)..]
    }

    /// Returns whether a cancel may interrupt the evaluation. A recurrent state does not survive that, and the other
    /// generations would lose theirs.
    fn is_interruptible(&self) -> bool {
        self.model.is_interruptible() && (self.running.len() < 2 || !self.model.is_recurrent())
    }

    /// Removes ended generations, given by index in ascending order.
    fn end(&mut self, ended: Vec<(usize, Result<NextStep, Error>)>) {
        let mut finished = Vec::new();
        for (at, end) in ended.into_iter().rev() {
            let RunningTask { slot, mut task } = self.running.remove(at);
            let saved = task.draft().map(|draft| self.slots.save(slot, draft));
            if task.embeds() {
                // No prompt continues from it, so its room is freed.
                self.slots.clear(slot);
            }
            self.slots.leave(slot);
            finished.push((task, end, saved));
        }
        // Counted before the client is notified.
        self.count_running();
        for (task, end, saved) in finished {
            let ended = match (end, saved) {
                (Err(error), _) | (_, Some(Err(error))) => Err(error),
                (Ok(end), saved) => Ok((end, saved.and_then(Result::ok))),
            };
            match ended {
                Ok((end, written)) => {
                    increment(&self.generations.done);
                    task.finish(end.reason(), written, self.slots.capacity());
                }
                Err(error) => {
                    increment(&self.generations.failed);
                    task.fail(error);
                }
            }
        }
    }

    fn fail_all(&mut self, error: &Error) {
        for RunningTask { slot, task } in self.running.drain(..) {
            increment(&self.generations.failed);
            self.slots.clear(slot);
            self.slots.leave(slot);
            task.fail(error.clone());
        }
    }
}

fn increment(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
