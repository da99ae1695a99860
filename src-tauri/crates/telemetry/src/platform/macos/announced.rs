//! Pressure as the kernel announces it: dispatch's memory-pressure source.

use block2::RcBlock;
use dispatch2::{
    _dispatch_source_type_memorypressure, DispatchObject, DispatchQoS, DispatchQueue,
    DispatchRetained, DispatchSource, GlobalQueueIdentifier,
    dispatch_source_memorypressure_flags_t as Flags,
};
use tierbar_core::status::Pressure;

const LEVELS: [(Flags, Pressure); 3] = [
    (Flags::DISPATCH_MEMORYPRESSURE_CRITICAL, Pressure::Critical),
    (Flags::DISPATCH_MEMORYPRESSURE_WARN, Pressure::Warning),
    (Flags::DISPATCH_MEMORYPRESSURE_NORMAL, Pressure::Normal),
];

/// Announces changes while this lives. A running call may outlive it.
#[derive(Debug)]
pub struct PressureListener {
    source: DispatchRetained<DispatchSource>,
}

impl PressureListener {
    pub(crate) fn begin(notify: impl Fn(Pressure) + Send + Sync + 'static) -> Option<Self> {
        // A late announcement is useless, so it must not wait behind other work.
        let queue = DispatchQueue::global_queue(GlobalQueueIdentifier::QualityOfService(
            DispatchQoS::UserInitiated,
        ));
        let mask = LEVELS
            .iter()
            .fold(0, |mask, (flag, _)| mask | flag.0 as usize);
        // SAFETY: the type is one of the system's own; it takes no handle, and flags as its mask.
        let source = unsafe {
            DispatchSource::new(
                (&raw const _dispatch_source_type_memorypressure).cast_mut(),
                0,
                mask,
                Some(&queue),
            )
        };
        let handler = {
            let source: *const DispatchSource = &*source;
            RcBlock::new(move || {
                // SAFETY: dispatch calls a source's handler only while the source is there.
                let flags = unsafe { &*source }.data();
                let level = LEVELS.iter().find(|(flag, _)| flags & flag.0 as usize != 0);
                if let Some((_, level)) = level {
                    notify(*level);
                }
            })
        };
        // SAFETY: dispatch copies the block; what it captures may be used and dropped on any thread, and the source's
        // address is used by that source's own calls alone.
        unsafe { source.set_event_handler_with_block(RcBlock::as_ptr(&handler)) };
        source.activate();
        Some(Self { source })
    }
}

impl Drop for PressureListener {
    fn drop(&mut self) {
        self.source.cancel();
    }
}
