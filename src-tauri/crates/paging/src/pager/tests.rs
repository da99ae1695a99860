//! Real files, memory and threads.

use super::*;
use crate::{
    layout::{Tensor, TensorKind},
    platform::{page_bytes, testing::Mapping},
    pool::FileRange,
};
use std::{fs, io::Write};

const LAYERS: u32 = 4;
const EXPERTS: u32 = 6;
const USED: u32 = 2;
/// Not a multiple of a page, so that neighbours share pages.
const SLICE: u64 = 5 * 16_384 + 4_000;

struct Model {
    _folder: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
    tensors: Vec<Tensor>,
    mapping: Mapping,
}

/// Three matrices of each expert, behind a dense tensor of each layer.
fn model() -> Model {
    let (mut tensors, mut at) = (Vec::new(), 4_096 + 96);
    let mut push = |bytes: u64, kind: TensorKind| {
        tensors.push(Tensor {
            file: 0,
            offset: at,
            bytes,
            kind,
        });
        at = (at + bytes).next_multiple_of(32);
    };
    for layer in 0..LAYERS {
        push(70_000, TensorKind::Dense);
        for _ in 0..3 {
            push(
                SLICE * u64::from(EXPERTS),
                TensorKind::Experts {
                    layer,
                    experts: EXPERTS,
                },
            );
        }
    }
    push(9_000, TensorKind::Mapped);
    let mut state = 7u32;
    let bytes: Vec<u8> = (0..at)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    fs::File::create(&path).unwrap().write_all(&bytes).unwrap();
    let mapping = Mapping::of(&path);
    Model {
        _folder: folder,
        path,
        bytes,
        tensors,
        mapping,
    }
}

impl Model {
    fn pager(&self, budget: impl Fn(u64) -> u64) -> Result<Pager, Error> {
        self.pager_with(EvictionPolicy::LeastLikely, budget)
    }

    fn pager_with(
        &self,
        policy: EvictionPolicy,
        budget: impl Fn(u64) -> u64,
    ) -> Result<Pager, Error> {
        let layout = Layout::new(&self.tensors, page_bytes()).unwrap();
        let least = layout.least_bytes(USED);
        let areas = platform::testing::lay_over(&layout, self.mapping);
        let settings = PagerSettings {
            budget_bytes: budget(least),
            used: USED,
            policy,
            threads: 4,
            patience: Duration::from_millis(300),
        };
        Pager::start(layout, areas, vec![self.path.clone()], settings)
    }

    fn of_kind(&self, wanted: impl Fn(TensorKind) -> bool) -> impl Iterator<Item = &Tensor> {
        self.tensors
            .iter()
            .filter(move |tensor| wanted(tensor.kind))
    }

    fn is_right(&self, start: u64, bytes: u64) -> bool {
        let range = usize::try_from(start).unwrap()..usize::try_from(start + bytes).unwrap();
        self.mapping.read(start, bytes) == self.bytes[range]
    }

    fn expert_is_right(&self, layer: u32, expert: u32) -> bool {
        self.of_kind(|kind| matches!(kind, TensorKind::Experts { layer: of, .. } if of == layer))
            .all(|tensor| self.is_right(tensor.offset + u64::from(expert) * SLICE, SLICE))
    }

    fn rest_is_right(&self) -> bool {
        self.of_kind(|kind| matches!(kind, TensorKind::Dense | TensorKind::Mapped))
            .all(|tensor| self.is_right(tensor.offset, tensor.bytes))
    }
}

fn wanted() -> bool {
    false
}

#[test]
fn needed_experts_are_the_files_bytes_in_any_order() {
    let model = model();
    let pager = model.pager(|least| least).unwrap();
    assert!(model.rest_is_right());
    let mut state = 1u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    for token in 0..60 {
        let all = token % 10 == 9;
        for layer in 0..LAYERS {
            let experts: Vec<u32> = if all {
                (0..EXPERTS).collect()
            } else {
                (0..USED).map(|_| next(EXPERTS)).collect()
            };
            assert!(pager.need(layer, &experts, all, &wanted).unwrap());
            for &expert in &experts {
                assert!(
                    model.expert_is_right(layer, expert),
                    "token {token}, layer {layer}, expert {expert}"
                );
            }
        }
    }
    assert!(model.rest_is_right());
    let cost = pager.cost();
    assert!(
        cost.stats.evicted > 0 && cost.stats.hits > 0 && cost.stats.ahead > 0,
        "{cost:?}"
    );
    let layout = Layout::new(&model.tensors, page_bytes()).unwrap();
    assert!(cost.held_bytes <= layout.least_bytes(USED), "{cost:?}");
}

#[test]
fn layers_in_a_circle_are_read_ahead_and_right() {
    let model = model();
    // Of four layers, one is always read.
    let pager = model
        .pager_with(EvictionPolicy::MostRecent, |least| least / 2 * 3)
        .unwrap();
    let parts: Vec<u32> = (0..EXPERTS).collect();
    for round in 0..8 {
        for layer in 0..LAYERS {
            assert!(pager.need(layer, &parts, true, &wanted).unwrap());
            for &part in &parts {
                let is_right = model.expert_is_right(layer, part);
                assert!(is_right, "round {round}, layer {layer}, part {part}");
            }
        }
    }
    let cost = pager.cost();
    assert!(cost.stats.ahead > 0, "{cost:?}");
    // The least that any order of leaving could read is a quarter of it.
    let parts = u64::from(LAYERS * EXPERTS);
    assert!(cost.read_bytes < 6 * parts * 3 * SLICE, "{cost:?}");
}

#[test]
fn a_picture_shows_what_is_held() {
    let model = model();
    let pager = model.pager(|least| least).unwrap();
    let empty = pager.picture();
    assert_eq!(empty.layers, ["......"; LAYERS as usize]);
    assert_eq!(empty.held_bytes, 0);
    assert!(pager.need(1, &[3], false, &wanted).unwrap());
    assert!(pager.need(2, &[0, 5], false, &wanted).unwrap());
    let picture = pager.picture();
    assert_eq!(picture.layers, ["......", "...9..", "9....9", "......"]);
    assert_eq!(picture.held_bytes, pager.cost().held_bytes);
    assert!(picture.held_bytes < picture.all_bytes / 6, "{picture:?}");
}

#[test]
fn an_error_of_an_unawaited_read_is_forgotten() {
    let model = model();
    let pager = model.pager(|least| least).unwrap();
    let old = Error::new(Code::Storage, "the disk was away");
    pager.inner.board.lock().failed.insert(0, old.clone());
    assert!(pager.need(0, &[0], false, &wanted).unwrap());
    // One of an expert that is needed is reported, once.
    let unread = UnreadExpert {
        matrices: 1,
        failed: false,
    };
    let mut board = pager.inner.board.lock();
    board.cache.take(&[1], 2);
    board.unread.insert(1, unread);
    let job = ReadJob {
        unit: 1,
        recycled: None,
        run: FileRange {
            area: 0,
            bytes: 0..0,
        },
        end: 0,
    };
    board.end(&job, Err(old.clone()));
    assert_eq!(
        board.failed.remove(&1).map(|error| error.message),
        Some(old.message)
    );
    assert!(board.cache.is_absent(1));
    drop(board);
    assert!(pager.need(0, &[1], false, &wanted).unwrap());
    assert!(model.expert_is_right(0, 1));
}

#[test]
fn an_expert_that_is_chosen_twice_is_read_once() {
    let model = model();
    let pager = model.pager(|least| least).unwrap();
    let before = pager.cost().read_bytes;
    assert!(pager.need(1, &[3, 3], false, &wanted).unwrap());
    assert!(model.expert_is_right(1, 3) && pager.is_held(1, 3));
    assert!(!pager.is_held(1, 2) && !pager.is_held(9, 0));
    let read = pager.cost().read_bytes - before;
    assert!(read < 2 * 3 * SLICE, "{read}");
}

#[test]
fn a_cache_for_everything_reads_each_expert_once() {
    let model = model();
    let pager = model.pager(|least| 4 * least).unwrap();
    for _ in 0..2 {
        for layer in 0..LAYERS {
            let all: Vec<u32> = (0..EXPERTS).collect();
            pager.need(layer, &all, false, &wanted).unwrap();
        }
    }
    let cost = pager.cost();
    assert_eq!(
        (cost.stats.misses, cost.stats.evicted),
        (u64::from(LAYERS * EXPERTS), 0)
    );
}

#[test]
fn a_smaller_budget_returns_memory_and_stays_right() {
    let model = model();
    let pager = model.pager(|least| 4 * least).unwrap();
    let least = Layout::new(&model.tensors, page_bytes())
        .unwrap()
        .least_bytes(USED);
    for layer in 0..LAYERS {
        pager
            .need(layer, &[0, 1, 2, 3, 4, 5], false, &wanted)
            .unwrap();
    }
    let before = model.mapping.resident_bytes();
    assert_eq!(pager.resize(0), least);
    assert!(pager.cost().held_bytes <= least);
    let freed = before - model.mapping.resident_bytes();
    assert!(freed > least / 2, "{freed} of {before} bytes");
    for layer in 0..LAYERS {
        pager.need(layer, &[5, 2], false, &wanted).unwrap();
        assert!(model.expert_is_right(layer, 5) && model.expert_is_right(layer, 2));
    }
}

#[test]
fn a_file_that_shrinks_is_an_error_with_its_name() {
    let model = model();
    let pager = model.pager(|least| least).unwrap();
    pager.need(0, &[0], false, &wanted).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&model.path)
        .unwrap()
        .set_len(100_000)
        .unwrap();
    let error = pager.need(3, &[5], false, &wanted).unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(
        error
            .message
            .contains("model has changed while it was in use"),
        "{error}"
    );
    // What was read is still there.
    assert!(pager.need(0, &[0], false, &wanted).unwrap());
    assert!(model.expert_is_right(0, 0));
}

#[test]
fn an_abandoned_read_blocks_no_thread() {
    let model = model();
    let pager = model.pager(|least| least).unwrap();
    assert!(!pager.need(0, &[0], false, &|| true).unwrap());
    assert!(pager.need(0, &[0], false, &wanted).unwrap());
    assert!(model.expert_is_right(0, 0));
}

#[test]
fn too_small_a_budget_is_refused_with_the_least() {
    let model = model();
    let error = model.pager(|least| least - 1).unwrap_err();
    assert_eq!(error.code, Code::OverBudget);
    assert!(error.message.contains("is too little"), "{error}");
}

#[test]
fn an_expert_that_is_not_there_is_an_error() {
    let model = model();
    let pager = model.pager(|least| least).unwrap();
    let error = pager.need(0, &[EXPERTS], false, &wanted).unwrap_err();
    assert_eq!(error.code, Code::Internal);
}

#[test]
fn a_disk_that_does_not_answer_fails_the_answer_alone() {
    let model = model();
    let mut pager = model.pager(|least| least).unwrap();
    // Reading has stopped, as on a disk that hangs.
    pager.inner.board.lock().closed = true;
    pager.inner.work.notify_all();
    for thread in pager.threads.drain(..) {
        thread.join().unwrap();
    }
    let error = pager.need(0, &[0, 1], false, &|| false).unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(error.message.contains("has not answered"), "{error}");
    // The disk is back.
    pager.inner.board.lock().closed = false;
    let inner = Arc::clone(&pager.inner);
    pager.threads.push(std::thread::spawn(move || inner.work()));
    assert!(pager.need(0, &[0, 1], false, &|| false).unwrap());
}
