//! What llama.cpp calls between the nodes of its graph: here evaluation waits for weights.

use super::{
    PagedWeights, PagingBackend,
    approximation::{approximate_choice, renormalize},
    places::feed_forward_matrix,
};
use crate::llama::interrupt::Interrupt;
use llama_cpp_sys_2 as sys;
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    ffi::{CStr, c_void},
    sync::Arc,
};
use tierbar_core::{Error, run::Approximation};

/// llama.cpp's name of the router's choice, before the number of the layer, and of the weights of that choice.
const CHOICE: &[u8] = b"ffn_moe_topk-";
const WEIGHTS: &[u8] = b"ffn_moe_weights-";
/// Of the router's probabilities, before they are biased or masked for the choice.
const PROBABILITIES: &[u8] = b"ffn_moe_probs-";

/// The callback's data, of one context.
#[derive(Debug)]
pub(crate) struct EvaluationHook {
    paged: Arc<PagedWeights>,
    interrupt: Arc<Interrupt>,
    state: Mutex<HookState>,
}

#[derive(Debug, Default)]
struct HookState {
    failure: Option<Error>,
    /// The dense layer that is computed.
    layer: Option<u32>,
    /// Of the last choice, row by row: places that must not count.
    dropped: Vec<Vec<usize>>,
    /// A layer and the address of its tensor of probabilities, in the graph that is evaluated.
    probabilities: Option<(u32, usize)>,
    /// Whether each row of the batch is a token whose successor is asked for.
    generates: bool,
}

/// What evaluation stops at.
enum HookPoint {
    Choice(u32),
    Weights,
    /// The first and the last use of a dense layer's matrices.
    Layer(u32),
    LayerEnd,
}

impl EvaluationHook {
    pub(crate) fn new(paged: Arc<PagedWeights>, interrupt: Arc<Interrupt>) -> Self {
        Self {
            paged,
            interrupt,
            state: Mutex::default(),
        }
    }

    /// Why the last evaluation was stopped, if it was because of its weights.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        let mut state = self.state.lock();
        state.layer = None;
        state.probabilities = None;
        state.failure.take()
    }

    /// Sets whether each row of the next batch is a token whose successor is asked for. Prompts are read exactly.
    pub(crate) fn generates(&self, all: bool) {
        self.state.lock().generates = all;
    }

    /// Has the chosen experts in memory. If that fails, stops the evaluation; if it is interrupted, it ends by itself.
    fn provide(&self, layer: u32, chosen: &[u32], next: bool) {
        let PagedWeights { paging, trace, .. } = &*self.paged;
        if let Some(trace) = trace {
            trace.add(layer, chosen);
        }
        let provided = match paging {
            PagingBackend::Cache { pager, .. } => {
                let provided = pager.need(layer, chosen, next, &|| self.interrupt.is_due());
                provided.map(drop)
            }
            PagingBackend::System(announcer) => announcer.need(layer, chosen, next),
        };
        if let Err(error) = provided {
            self.state.lock().failure = Some(error);
            self.interrupt.stop();
        }
    }

    /// Has a dense layer in memory, unless it is the one that is computed.
    fn provide_layer(&self, layer: u32) {
        if self.state.lock().layer.replace(layer) == Some(layer) {
            return;
        }
        let parts: Vec<u32> = (0..self.paged.parts.get(&layer).copied().unwrap_or(0)).collect();
        if !parts.is_empty() {
            self.provide(layer, &parts, true);
        }
    }

    fn experts_are_approximated(&self) -> bool {
        self.paged.approximation != Approximation::Off
    }

    /// Where evaluation stops for a node, before or after it is computed.
    ///
    /// # Safety
    /// The tensor must be live.
    unsafe fn stop(&self, tensor: *const sys::ggml_tensor) -> Option<HookPoint> {
        if self.paged.is_dense() {
            // SAFETY: as the caller says; what a node is computed from lives as long as it does.
            let weight = unsafe {
                let source = (*tensor).src[0];
                if source.is_null() {
                    return None;
                }
                CStr::from_ptr((*source).name.as_ptr())
            };
            let (layer, matrix) = feed_forward_matrix(weight.to_str().ok()?)?;
            return Some(if matrix == "down" {
                HookPoint::LayerEnd
            } else {
                HookPoint::Layer(layer)
            });
        }
        // SAFETY: as the caller says; ggml ends every name with a zero.
        let name = unsafe { CStr::from_ptr((*tensor).name.as_ptr()) }.to_bytes();
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
        if let Some(layer) = name.strip_prefix(CHOICE).and_then(number) {
            return Some(HookPoint::Choice(layer));
        }
        if self.experts_are_approximated()
            && let Some(layer) = name.strip_prefix(PROBABILITIES).and_then(number)
        {
            // It is computed before the choice, and read once more after it.
            self.state.lock().probabilities = Some((layer, tensor as usize));
        }
        let drops = self.paged.approximation == Approximation::Drop;
        (drops && name.starts_with(WEIGHTS)).then_some(HookPoint::Weights)
    }

    /// Provides the experts of a choice, which may be changed before.
    ///
    /// # Safety
    /// The tensor must be the live result of llama.cpp's choice.
    unsafe fn choice(&self, layer: u32, tensor: *mut sys::ggml_tensor) {
        // SAFETY: as the caller says.
        let (used, rows) = unsafe {
            let [used, rows, ..] = (*tensor).ne.map(|side| usize::try_from(side).unwrap_or(0));
            (used, rows)
        };
        // So many rows use nearly all of the next layer, too.
        let many = rows * used >= self.paged.all as usize;
        let generates = {
            let mut state = self.state.lock();
            state.dropped.clear();
            state.generates
        };
        if self.experts_are_approximated() && generates && !many {
            // SAFETY: as the caller says.
            unsafe { self.approximate(layer, tensor, used, rows) };
        }
        let mut chosen = BTreeSet::new();
        for row in 0..rows {
            // SAFETY: as the caller says.
            chosen.extend(unsafe { read_experts(tensor, row, used) });
        }
        let chosen: Vec<u32> = chosen.into_iter().collect();
        self.provide(layer, &chosen, many);
    }

    /// Changes the choice of each row to experts that are in memory.
    ///
    /// # Safety
    /// As [`Self::choice`].
    unsafe fn approximate(
        &self,
        layer: u32,
        tensor: *mut sys::ggml_tensor,
        used: usize,
        rows: usize,
    ) {
        let PagingBackend::Cache { pager, .. } = &self.paged.paging else {
            return;
        };
        let all = self.paged.all as usize;
        let Some((of, weights)) = self.state.lock().probabilities else {
            return;
        };
        let weights = weights as *const sys::ggml_tensor;
        // SAFETY: `ggml_argsort_top_k` sorts all experts, and the choice is a view of the first columns. The probabilities are a tensor
        // of the same graph, and still in memory, because the weights of the chosen experts are read from them later.
        let order = unsafe {
            let order = (*tensor).src[0];
            let has_all = |tensor: *const sys::ggml_tensor| {
                usize::try_from((*tensor).ne[0]) == Ok(all)
                    && usize::try_from((*tensor).ne[1]) == Ok(rows)
            };
            if order.is_null() || (*order).op != sys::GGML_OP_ARGSORT || of != layer {
                return;
            }
            if !has_all(order) || !has_all(weights) {
                return;
            }
            order
        };
        let is_held = |expert| pager.is_held(layer, expert);
        for row in 0..rows {
            // SAFETY: both have a row of all experts for each row of the choice.
            let (order, weights) = unsafe {
                let weights = read_row::<f32>(weights, row * (*weights).nb[1], all);
                (read_experts(order, row, all), weights)
            };
            let choice =
                approximate_choice(self.paged.approximation, &order, used, &weights, &is_held);
            if choice.changed > 0 {
                let experts: Vec<i32> = choice
                    .experts
                    .iter()
                    .filter_map(|expert| i32::try_from(*expert).ok())
                    .collect();
                // SAFETY: a row of as many numbers as were read.
                unsafe { write_row(tensor, row * (*tensor).nb[1], &experts) };
            }
            self.paged.changed.lock().add(used, &choice);
            self.state.lock().dropped.push(choice.dropped);
        }
    }

    /// Leaves the dropped experts of each row out of the sum.
    ///
    /// # Safety
    /// The tensor must be the live weights of the last choice.
    unsafe fn weights(&self, tensor: *mut sys::ggml_tensor) {
        // SAFETY: as the caller says. Its shape is [1, experts used, rows].
        let used = usize::try_from(unsafe { (*tensor).ne[1] }).unwrap_or(0);
        let dropped = std::mem::take(&mut self.state.lock().dropped);
        for (row, dropped) in dropped.iter().enumerate() {
            if dropped.is_empty() {
                continue;
            }
            // SAFETY: as the caller says.
            unsafe {
                let stride = (*tensor).nb[2];
                let mut weights = read_row::<f32>(tensor, row * stride, used);
                renormalize(&mut weights, dropped);
                write_row(tensor, row * stride, &weights);
            }
        }
    }
}

/// ggml calls this for each node: first whether its result is wanted, then with it.
///
/// # Safety
/// The tensor must be live, and `data` a [`EvaluationHook`].
pub(crate) unsafe extern "C" fn evaluating(
    tensor: *mut sys::ggml_tensor,
    ask: bool,
    data: *mut c_void,
) -> bool {
    // SAFETY: as the caller says.
    let hook = unsafe { &*data.cast::<EvaluationHook>() };
    // SAFETY: as the caller says.
    let Some(stop) = (unsafe { hook.stop(tensor) }) else {
        // Not needed by the hook, so it is computed together with the next.
        return !ask;
    };
    match stop {
        // Nothing of the layer is computed before ggml has asked about it.
        HookPoint::Layer(layer) if ask => {
            hook.provide_layer(layer);
            return false;
        }
        // SAFETY: as the caller says; the result of the node is there.
        HookPoint::Choice(layer) if !ask => unsafe { hook.choice(layer, tensor) },
        // SAFETY: as above.
        HookPoint::Weights if !ask => unsafe { hook.weights(tensor) },
        _ => {}
    }
    true
}

/// Reads a row of a matrix of numbers of experts.
///
/// # Safety
/// The tensor must be live, and have the row with as many numbers of 32 bits.
unsafe fn read_experts(tensor: *const sys::ggml_tensor, row: usize, count: usize) -> Vec<u32> {
    // SAFETY: as the caller says.
    let numbers: Vec<i32> = unsafe { read_row(tensor, row * (*tensor).nb[1], count) };
    let experts = numbers.into_iter();
    experts
        .filter_map(|expert| expert.try_into().ok())
        .collect()
}

/// # Safety
/// The tensor must be live and have as many numbers from this byte on.
unsafe fn read_row<T: Default + Clone>(
    tensor: *const sys::ggml_tensor,
    at: usize,
    count: usize,
) -> Vec<T> {
    let mut numbers = vec![T::default(); count];
    // SAFETY: as the caller says.
    unsafe {
        let bytes = count * size_of::<T>();
        sys::ggml_backend_tensor_get(tensor, numbers.as_mut_ptr().cast(), at, bytes);
    }
    numbers
}

/// # Safety
/// As [`read_row`].
unsafe fn write_row<T>(tensor: *mut sys::ggml_tensor, at: usize, numbers: &[T]) {
    // SAFETY: as the caller says.
    unsafe {
        let bytes = size_of_val(numbers);
        sys::ggml_backend_tensor_set(tensor, numbers.as_ptr().cast(), at, bytes);
    }
}
