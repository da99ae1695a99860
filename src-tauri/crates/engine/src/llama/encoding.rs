//! An image on its way through the projector, which its client's leaving ends.

use llama_cpp_sys_2 as sys;
use serde::Serialize;
use std::{
    ffi::c_void,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};
use tierbar_core::{Code, Error};

/// Multiplications between two looks at whether the client is there: milliseconds of a CPU's thread, or of a GPU, which a
/// look makes wait.
const CPU_STEP: u64 = 100_000_000;
const GPU_STEP: u64 = 4_000_000_000;

/// How many were encoded. For `/props`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Encoding {
    running: AtomicUsize,
    done: AtomicU64,
    /// The client went away before the last node.
    cancelled: AtomicU64,
    /// The one that runs was broken off, or never begun.
    #[serde(skip)]
    broken_off: AtomicBool,
    /// Of the one that runs.
    #[serde(skip)]
    gone: Mutex<Arc<AtomicBool>>,
    /// Multiplications since the last look.
    #[serde(skip)]
    work: AtomicU64,
    #[serde(skip)]
    step: u64,
}

impl Encoding {
    pub(super) fn new(gpu: bool) -> Self {
        Self {
            step: if gpu { GPU_STEP } else { CPU_STEP },
            ..Self::default()
        }
    }

    /// Runs the one that is next, unless its client has gone, or until it does.
    pub(super) fn run<T>(
        &self,
        gone: &Arc<AtomicBool>,
        encode: impl FnOnce() -> T,
    ) -> Result<T, Error> {
        *self.gone.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(gone);
        self.work.store(0, Ordering::Relaxed);
        self.running.store(1, Ordering::Relaxed);
        let left = gone.load(Ordering::Acquire);
        self.broken_off.store(left, Ordering::Relaxed);
        let encoded = (!left).then(encode);
        // What was broken off says that it went well.
        let encoded = encoded.filter(|_| !self.broken_off.load(Ordering::Relaxed));
        let counter = match encoded {
            Some(_) => &self.done,
            None => &self.cancelled,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.running.store(0, Ordering::Relaxed);
        encoded.ok_or_else(|| Error::new(Code::Cancelled, "the client has gone"))
    }

    fn is_gone(&self) -> bool {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.load(Ordering::Acquire)
    }

    /// Whether it is time to look, behind a node of so many multiplications.
    fn is_due(&self, work: u64) -> bool {
        let sum = self.work.load(Ordering::Relaxed).saturating_add(work);
        let due = sum >= self.step;
        self.work
            .store(if due { 0 } else { sum }, Ordering::Relaxed);
        due
    }
}

/// ggml asks before a node whether it is to stop behind it, and there whether to go on.
pub(super) unsafe extern "C" fn between_nodes(
    node: *mut sys::ggml_tensor,
    before: bool,
    data: *mut c_void,
) -> bool {
    // SAFETY: `data` is the encoding of `Projector::load`, which lives as long as the projector, and the node is live.
    let (encoding, node) = unsafe { (&*data.cast::<Encoding>(), &*node) };
    if !before {
        let gone = encoding.is_gone();
        encoding.broken_off.fetch_or(gone, Ordering::Relaxed);
        return !gone;
    }
    // SAFETY: a node's sources are live.
    encoding.is_gone() || encoding.is_due(unsafe { multiplications(node) })
}

/// # Safety
/// The node and its sources are live.
unsafe fn multiplications(node: &sys::ggml_tensor) -> u64 {
    let elements = |tensor: &sys::ggml_tensor| tensor.ne.iter().product::<i64>();
    // SAFETY: as the caller says.
    let source = |at: usize| unsafe { node.src[at].as_ref() };
    let count = match (node.op, source(0), source(1)) {
        (sys::GGML_OP_MUL_MAT, Some(rows), _) => elements(node).saturating_mul(rows.ne[0]),
        // Queries by keys, and what comes of that by values.
        (sys::GGML_OP_FLASH_ATTN_EXT, Some(queries), Some(keys)) => {
            elements(queries).saturating_mul(2 * keys.ne[1])
        }
        _ => elements(node),
    };
    u64::try_from(count).unwrap_or(0)
}
