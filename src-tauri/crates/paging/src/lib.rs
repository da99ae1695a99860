//! Experts on demand, for a mixture of experts that is larger than memory.
//!
//! A token uses few of a layer's experts, and the router names them before they are read. [`Pager`] keeps a fixed number of
//! bytes of experts in memory, and reads the ones that are missing in whole matrices, many at a time. They lie at the
//! addresses at which the model's file was mapped: computation needs no change, and no result changes.
//! [`Announcer`] leaves memory to the system, and tells it what is read next.
//!
//! [`layout`] says which pages of the files belong to which expert, [`cache`] which experts stay, and [`likelihood`] which are
//! likely to be needed next; all are pure.
//! [`platform`] lays memory over a mapping, moves pages within it and reads past the page cache. This crate knows nothing
//! of llama.cpp: the caller names the tensors and the experts.
//!
//! `make bench-paging` measures it beside the kernel's own paging.

mod announcer;
mod cache;
mod cost;
mod layout;
mod likelihood;
mod pager;
mod picture;
mod places;
mod platform;
mod pool;
mod simulate;

pub use announcer::Announcer;
pub use cache::{CacheStats, EvictionPolicy};
pub use cost::PagingCost;
pub use layout::{Layout, LayoutError, Tensor, TensorKind};
pub use pager::{Pager, PagerSettings};
pub use picture::ResidencyPicture;
pub use platform::{MappedFile, MemoryArea, page_bytes};
pub use simulate::{Trace, belady, least_frequent, least_recent, simulate};
