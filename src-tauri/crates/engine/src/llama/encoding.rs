//! The encoding of an image: a disconnect ends it, a pause suspends it, and it takes turns with the evaluations of tokens.

use crate::{pause::Pause, turns::Turns};
use llama_cpp_sys_2 as sys;
use parking_lot::Mutex;
use serde::Serialize;
use std::{
    ffi::c_void,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error};

/// Multiplications between two checks of the client and of waiting evaluations: milliseconds of a CPU thread, or of a GPU,
/// which a check interrupts.
const CPU_STEP: u64 = 100_000_000;
const GPU_STEP: u64 = 4_000_000_000;

/// The encoder's counters, for `/props`, and its state.
#[derive(Debug, Default, Serialize)]
pub(crate) struct EncoderState {
    running: AtomicUsize,
    /// Whether the running or next one is suspended by a pause.
    held: AtomicUsize,
    /// How often an encoding yielded to waiting evaluations.
    gave_way: AtomicU64,
    done: AtomicU64,
    /// Encodings whose client disconnected before the last node.
    cancelled: AtomicU64,
    /// Whether the running one was interrupted, or never started.
    #[serde(skip)]
    broken_off: AtomicBool,
    /// The cancel flag of the running one.
    #[serde(skip)]
    gone: Mutex<Arc<AtomicBool>>,
    /// Multiplications since the last check.
    #[serde(skip)]
    work: AtomicU64,
    #[serde(skip)]
    step: u64,
    #[serde(skip)]
    share: Mutex<TimeShare>,
    #[serde(skip)]
    turns: Arc<Turns>,
    #[serde(skip)]
    pause: Arc<Pause>,
}

/// The running encoding's share of time.
#[derive(Debug, Default)]
struct TimeShare {
    /// When its turn began.
    since: Option<Instant>,
    /// How long it waited for its turn.
    waited: Duration,
}

impl EncoderState {
    pub(super) fn new(gpu: bool, turns: Arc<Turns>, pause: Arc<Pause>) -> Self {
        Self {
            step: if gpu { GPU_STEP } else { CPU_STEP },
            turns,
            pause,
            ..Self::default()
        }
    }

    /// Runs the next encoding, unless its client has gone, or until it goes.
    pub(super) fn run<T>(
        &self,
        gone: &Arc<AtomicBool>,
        encode: impl FnOnce() -> T,
    ) -> Result<T, Error> {
        *self.gone.lock() = Arc::clone(gone);
        self.work.store(0, Ordering::Relaxed);
        self.running.store(1, Ordering::Relaxed);
        self.stand_still();
        let began = Instant::now();
        let turn = self.turns.take();
        self.begin_share(began);
        let left = gone.load(Ordering::Acquire);
        self.broken_off.store(left, Ordering::Relaxed);
        let encoded = (!left).then(encode);
        drop(turn);
        // An interrupted encoding also reports success.
        let encoded = encoded.filter(|_| !self.broken_off.load(Ordering::Relaxed));
        let counter = match encoded {
            Some(_) => &self.done,
            None => &self.cancelled,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.running.store(0, Ordering::Relaxed);
        encoded.ok_or_else(|| Error::new(Code::Cancelled, "the client disconnected"))
    }

    fn is_gone(&self) -> bool {
        self.gone.lock().load(Ordering::Acquire)
    }

    /// Yields to others whose turn it is; returns whether the client is still there.
    fn go_on(&self) -> bool {
        if self.is_paused() {
            self.pass(|| self.stand_still());
        } else if self.turns.is_wanted() && self.has_had_its_share() {
            self.gave_way.fetch_add(1, Ordering::Relaxed);
            self.pass(|| ());
        }
        !self.is_gone()
    }

    fn pass(&self, between: impl FnOnce()) {
        let mut ended = Instant::now();
        self.turns.pass(|| {
            between();
            ended = Instant::now();
        });
        self.begin_share(ended);
    }

    /// Waits for the end of a pause, unless the client disconnects.
    fn stand_still(&self) {
        if self.is_paused() {
            self.held.store(1, Ordering::Relaxed);
            self.pause.wait(|| !self.is_gone());
            self.held.store(0, Ordering::Relaxed);
        }
    }

    fn is_paused(&self) -> bool {
        !self.pause.left().is_zero()
    }

    fn begin_share(&self, requested: Instant) {
        let mut share = self.share.lock();
        share.waited = requested.elapsed();
        share.since = Some(Instant::now());
    }

    /// Returns whether it has computed as long as the others before it: an evaluation of a long prompt takes far longer
    /// than a few nodes.
    fn has_had_its_share(&self) -> bool {
        let TimeShare { since, waited } = *self.share.lock();
        since.is_none_or(|since| since.elapsed() >= waited)
    }

    /// Returns whether a check is due after a node of this many multiplications.
    fn is_due(&self, work: u64) -> bool {
        let sum = self.work.load(Ordering::Relaxed).saturating_add(work);
        let due = sum >= self.step;
        self.work
            .store(if due { 0 } else { sum }, Ordering::Relaxed);
        due
    }
}

/// ggml calls this before a node, to ask whether to stop after it, and after the node, to ask whether to continue.
pub(super) unsafe extern "C" fn between_nodes(
    node: *mut sys::ggml_tensor,
    before: bool,
    data: *mut c_void,
) -> bool {
    // SAFETY: `data` is the encoding of `Projector::load`, which lives as long as the projector, and the node is live.
    let (encoding, node) = unsafe { (&*data.cast::<EncoderState>(), &*node) };
    if !before {
        let goes_on = encoding.go_on();
        encoding.broken_off.fetch_or(!goes_on, Ordering::Relaxed);
        return goes_on;
    }
    // SAFETY: a node's sources are live.
    let due = encoding.is_due(unsafe { count_multiplications(node) });
    due || encoding.is_gone() || encoding.is_paused()
}

/// # Safety
/// The node and its sources are live.
unsafe fn count_multiplications(node: &sys::ggml_tensor) -> u64 {
    let elements = |tensor: &sys::ggml_tensor| tensor.ne.iter().product::<i64>();
    // SAFETY: as the caller says.
    let source = |at: usize| unsafe { node.src[at].as_ref() };
    let count = match (node.op, source(0), source(1)) {
        (sys::GGML_OP_MUL_MAT, Some(rows), _) => elements(node).saturating_mul(rows.ne[0]),
        // Queries by keys, and the result by values.
        (sys::GGML_OP_FLASH_ATTN_EXT, Some(queries), Some(keys)) => {
            elements(queries).saturating_mul(2 * keys.ne[1])
        }
        _ => elements(node),
    };
    u64::try_from(count).unwrap_or(0)
}
