//! The engine thread: owns the context and advances all running generations together, step by step.
//!
//! - A step is one evaluation of at most a micro-batch: one token for every stream, and the rest divided among the prompts,
//!   short ones first. While a stream runs, a step reads only as much of a prompt as takes about 50 ms (`shares`).
//! - Slots share all cells, so one slot may use the whole context while the others don't. When cells run short, old
//!   conversations are dropped first. Then the generation that started last yields its slot, and continues later.
//! - A model that cannot go back (sliding window, recurrent state) continues from checkpoints of its state.

mod embedding;
mod job;
mod media;
mod shares;
mod slots;
mod speculation;
mod task;

pub(crate) use embedding::run_pooled;
pub(crate) use job::{
    Answering, Event, FinishReason, Goal, Job, Summary, Timings, Written, check_fits, too_long,
};
pub(crate) use media::Media;
pub(crate) use speculation::{Drafter, MOST as MOST_DRAFTED};
pub(crate) use task::{Candidate, TokenReport};

use crate::{
    llama::{Batch, Context, Decoded, Interrupt, Model, Token},
    pause::Pause,
    swap::Swap,
    trims::Trims,
};
use serde::Serialize;
use shares::{Pace, shares};
use slots::{Outputs, Slots};
use speculation::{Effort, Gain};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    time::Instant,
};
use task::{Next, Task};
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
}

/// The interval of checkpoints during prefill, in tokens, for models that cannot go back in their state.
const MARK_EVERY: usize = 2048;
/// A generation starts only if this many tokens fit beside the running ones.
const HEADROOM: usize = 64;

/// What the host can request besides answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Controls<'a> {
    pub(crate) pause: &'a Pause,
    pub(crate) trims: &'a Trims,
    /// Set if conversations are saved at the end.
    pub(crate) swap: Option<&'a Swap>,
}

/// Runs jobs until all senders are dropped or the process ends.
pub(crate) fn run(
    model: &Arc<Model>,
    context: Context,
    drafter: Option<Drafter>,
    jobs: &mpsc::Receiver<Job>,
    generations: &Generations,
    controls: Controls<'_>,
) {
    let mut batching = Batching {
        controls,
        model,
        interrupt: context.interrupt(),
        slots: Slots::new(model, context),
        running: Vec::new(),
        waiting: VecDeque::new(),
        batch: Batch::default(),
        pace: Pace::default(),
        drafter,
        gain: Gain::default(),
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

/// A generation in its slot.
#[derive(Debug)]
struct Running {
    slot: usize,
    task: Task,
}

/// The running generations and their shared context.
struct Batching<'a> {
    controls: Controls<'a>,
    model: &'a Arc<Model>,
    interrupt: Arc<Interrupt>,
    slots: Slots,
    /// The oldest first.
    running: Vec<Running>,
    /// Generations without a slot or room, the next one first.
    waiting: VecDeque<Task>,
    batch: Batch,
    pace: Pace,
    drafter: Option<Drafter>,
    gain: Gain,
    /// Whether the last step was a medium's.
    was_media: bool,
    generations: &'a Generations,
}

/// What a step evaluates for one of `running`.
struct Share {
    at: usize,
    tokens: usize,
    /// The row of its logits for the next token, if all of its tokens are evaluated.
    row: Option<usize>,
    /// The row of its first token, if each of them has logits, as the tokens of a prompt do whose probabilities are asked for.
    scored: Option<usize>,
    /// Whether the slot gets a checkpoint after it.
    mark: bool,
    /// Whether all of its tokens are evaluated after it.
    last: bool,
    /// Drafted tokens evaluated after them, each with a row of its own.
    draft: Vec<Token>,
    /// The effort of drafting them.
    effort: Effort,
}

impl<'a> Batching<'a> {
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    fn take(&mut self, job: Job) {
        // The client disconnected while the job waited.
        if job.cancel.load(Ordering::Relaxed) {
            if !job.prompt.is_empty() {
                count(&self.generations.cancelled);
            }
            return;
        }
        if let Goal::SaveLatest(draft) = job.goal {
            let written = self.slots.save_latest(draft);
            let event = written.map_or_else(Event::Failed, |written| Event::Saved(written, None));
            let _gone = job.events.send((job.index, event));
            return;
        }
        self.waiting.push_back(Task::new(self.model, job));
    }

    /// Returns where to keep the conversations, once the process is to end.
    fn swap_requested(&self) -> Option<&'a Swap> {
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
        let shares = self.fill();
        if shares.is_empty() {
            return;
        }
        let decoded = self.slots.decode(&mut self.batch);
        match decoded {
            Ok(Decoded::Done) => {
                let took = started.elapsed();
                self.pace.observe(self.batch.len(), took);
                let given = self.settle(&shares);
                self.judge(&shares, given, took);
            }
            Ok(Decoded::Aborted) => self.recover(&shares),
            Ok(Decoded::NoRoom) => {
                self.recover(&shares);
                if !self.slots.evict() && !self.suspend_youngest() {
                    self.fail_all(&Error::new(
                        Code::Internal,
                        "the KV cache has no room for tokens that should fit",
                    ));
                }
            }
            Err(error) => self.fail_all(&error),
        }
        self.count_running();
    }

    fn drop_cancelled(&mut self) {
        let before = self.running.len() + self.waiting.len();
        let cancelled = |one: &mut Running| one.task.is_cancelled();
        for Running { slot, .. } in self.running.extract_if(.., cancelled) {
            self.slots.leave(slot);
        }
        self.waiting.retain(|task| !task.is_cancelled());
        self.count_running();
        for _ in self.running.len() + self.waiting.len()..before {
            count(&self.generations.cancelled);
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
            let Some(slot) = self.slots.seat(&task.wanted()) else {
                return;
            };
            let Some(mut task) = self.waiting.pop_front() else {
                return;
            };
            let held = self.slots.held(slot);
            task.seated(held, began);
            let is_held = held == task.tokens.len();
            let is_load = matches!(task.job.goal, Goal::Load);
            self.running.push(Running { slot, task });
            let end = match (is_held, is_load) {
                (true, _) => Ok(Next::Held),
                (false, false) => continue,
                (false, true) => Err(Error::new(
                    Code::Corrupt,
                    "the saved context could not be restored",
                )
                .hint("delete it and save it again")),
            };
            self.end(vec![(self.running.len() - 1, end)]);
        }
    }

    /// Makes room for one more step: evicts old conversations first, then suspends the youngest generation.
    fn make_room(&mut self) {
        while !self.slots.has_room(self.wanted().min(self.slots.batch())) {
            if !self.slots.evict() && !self.suspend_youngest() {
                return;
            }
        }
    }

    fn wanted(&self) -> usize {
        self.running.iter().map(|one| self.pending(one).len()).sum()
    }

    /// Suspends the youngest generation, which resumes later. Returns `false` if it is the only one.
    fn suspend_youngest(&mut self) -> bool {
        if self.running.len() < 2 {
            return false;
        }
        if let Some(Running { slot, task }) = self.running.pop() {
            self.slots.clear(slot);
            self.slots.leave(slot);
            self.waiting.push_front(task);
        }
        true
    }

    /// Returns the tokens that its slot does not hold yet.
    fn pending<'t>(&self, running: &'t Running) -> &'t [Token] {
        &running.task.tokens[self.slots.held(running.slot)..]
    }

    /// Returns whether a cancel may interrupt the evaluation. A recurrent state does not survive that, and the other
    /// generations would lose theirs.
    fn is_interruptible(&self) -> bool {
        self.model.is_interruptible() && (self.running.len() < 2 || !self.model.is_recurrent())
    }

    /// Fills the batch for the next evaluation.
    fn fill(&mut self) -> Vec<Share> {
        self.batch.clear();
        let room = self.slots.batch();
        let wants: Vec<_> = self
            .running
            .iter()
            .map(|one| one.task.tokens_due(self.slots.held(one.slot)))
            .collect();
        let streams = self.running.iter().any(|one| !one.task.is_reading());
        let prefill = if streams || !self.is_interruptible() {
            self.pace.chunk(room)
        } else {
            room
        };
        let embeds = self.is_embedding(&wants);
        self.slots.set_embeddings(embeds);
        let mut filled = Vec::new();
        // Each generation may have one row of logits, and those whose prompts are scored share the rest.
        let mut rows = self.slots.outputs().saturating_sub(self.running.len());
        for (at, share) in shares(&wants, room, prefill).into_iter().enumerate() {
            let running = &self.running[at];
            let share = if running.task.embeds() && wants[at] > 1 {
                // The last token is evaluated separately.
                share.min(wants[at] - 1)
            } else {
                share
            };
            let share = if embeds && wants[at] > 1 { 0 } else { share };
            let scores = running.task.scores();
            let share = if scores { share.min(1 + rows) } else { share };
            let held = self.slots.held(running.slot);
            let mark = self.next_mark(running);
            let tokens = mark.map_or(share, |mark| share.min(mark - held));
            if tokens == 0 {
                continue;
            }
            let last = held + tokens == running.task.tokens.len();
            let pending = &self.pending(running)[..tokens];
            let answers = last && running.task.answers();
            let outputs = match (scores, answers) {
                (true, _) => Outputs::All,
                (false, true) => Outputs::Last,
                (false, false) => Outputs::None,
            };
            let row = self
                .slots
                .push(&mut self.batch, running.slot, pending, outputs);
            if scores {
                rows = rows.saturating_sub(tokens - 1);
            }
            let mark = !last && mark == Some(held + tokens);
            filled.push(Share {
                at,
                tokens,
                row: row.filter(|_| answers),
                scored: row.filter(|_| scores).map(|row| row + 1 - tokens),
                mark,
                last,
                draft: Vec::new(),
                effort: Effort::None,
            });
        }
        if let [share] = &mut *filled
            && share.last
            && share.tokens == 1
            && share.scored.is_none()
        {
            (share.draft, share.effort) = self.draft(share.at);
            let running = &self.running[share.at];
            let pushed = &self.pending(running)[..share.tokens];
            self.slots
                .push_draft(&mut self.batch, running.slot, pushed, &share.draft);
        }
        filled
    }

    /// Returns whether the next evaluation returns embeddings. Then each of its tokens is an output, and there is room for
    /// only one per generation, so it does no prefill.
    fn is_embedding(&self, wants: &[usize]) -> bool {
        let mut due = self.running.iter().zip(wants);
        due.any(|(one, &want)| one.task.embeds() && want == 1)
    }

    /// Returns where the slot gets its next checkpoint during prefill: at each interval, and before the last token of the
    /// prompt, where the next turn will differ from this answer.
    fn next_mark(&self, running: &Running) -> Option<usize> {
        let kept = running.task.job.cache_prompt;
        if !kept || !self.slots.forgets() || !running.task.is_reading() {
            return None;
        }
        let held = self.slots.held(running.slot);
        let regular = (held / MARK_EVERY + 1) * MARK_EVERY;
        let end = running.task.tokens.len() - 1;
        Some(if end > held {
            regular.min(end)
        } else {
            regular
        })
    }

    /// Adds the evaluated tokens to their slots, and chooses the next token, or several with a draft, for each generation that
    /// is fully evaluated. Returns how many were chosen.
    fn settle(&mut self, shares: &[Share]) -> usize {
        let mut given = 0;
        let mut ended = Vec::new();
        for share in shares {
            let Running { slot, task } = &mut self.running[share.at];
            let held = self.slots.held(*slot);
            self.slots
                .extend(*slot, &task.tokens[held..held + share.tokens]);
            if share.mark {
                self.slots.mark(*slot);
            }
            for place in 0..share.scored.map_or(0, |_| share.tokens) {
                let row = share.scored.map(|first| first + place);
                if let Some(logits) = row.and_then(|row| self.slots.logits(row)) {
                    task.score(held + place, logits);
                }
            }
            if !share.last {
                continue;
            }
            let Some(row) = share.row else {
                ended.push((share.at, Ok(Next::Held)));
                continue;
            };
            let capacity = self.slots.capacity();
            if task.embeds() {
                ended.push((share.at, task.embed(self.slots.embedding(row))));
                continue;
            }
            for place in 0..=share.draft.len() {
                let next = self
                    .slots
                    .logits(row + place)
                    .ok_or_else(|| Error::new(Code::Internal, "no logits to sample from"))
                    .and_then(|logits| task.choose(logits, capacity));
                given += 1;
                let guessed = share.draft.get(place);
                match next {
                    Ok(Next::Token) if guessed.is_some() && guessed == task.tokens.last() => {
                        self.slots.extend(*slot, &share.draft[place..=place]);
                    }
                    Ok(Next::Token) => break,
                    end => {
                        ended.push((share.at, end));
                        break;
                    }
                }
            }
            if !share.draft.is_empty() {
                let (guessed, right) = (share.draft.len(), given - 1);
                task.drafted(guessed, right);
                let of = self.generations;
                of.drafted.fetch_add(guessed as u64, Ordering::Relaxed);
                of.accepted.fetch_add(right as u64, Ordering::Relaxed);
                // Rejected drafts are removed.
                self.slots.recover(*slot);
            }
        }
        self.end(ended);
        given
    }

    /// Removes ended generations, given by index in ascending order.
    fn end(&mut self, ended: Vec<(usize, Result<Next, Error>)>) {
        let mut finished = Vec::new();
        for (at, end) in ended.into_iter().rev() {
            let Running { slot, mut task } = self.running.remove(at);
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
                    count(&self.generations.done);
                    task.finish(end.reason(), written, self.slots.capacity());
                }
                Err(error) => {
                    count(&self.generations.failed);
                    task.fail(error);
                }
            }
        }
    }

    /// Discards the batch: the slots return to their state before it.
    fn recover(&mut self, shares: &[Share]) {
        for share in shares {
            self.slots.recover(self.running[share.at].slot);
        }
    }

    fn fail_all(&mut self, error: &Error) {
        for Running { slot, task } in self.running.drain(..) {
            count(&self.generations.failed);
            self.slots.clear(slot);
            self.slots.leave(slot);
            task.fail(error.clone());
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
