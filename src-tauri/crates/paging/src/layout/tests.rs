//! Layouts of made-up files.

use super::*;
use proptest::prelude::*;

const PAGE: u64 = 4096;

fn experts(layer: u32, count: u32, offset: u64, slice: u64) -> Tensor {
    let kind = TensorKind::Experts {
        layer,
        experts: count,
    };
    Tensor {
        file: 0,
        offset,
        bytes: slice * u64::from(count),
        kind,
    }
}

fn other(kind: TensorKind, offset: u64, bytes: u64) -> Tensor {
    Tensor {
        file: 0,
        offset,
        bytes,
        kind,
    }
}

#[test]
fn slices_that_begin_with_pages_share_none() {
    let layout = Layout::new(&[experts(3, 4, 2 * PAGE, 5 * PAGE)], PAGE).unwrap();
    let slices: Vec<_> = (0..4)
        .map(|unit| layout.slices(unit)[0].own.clone())
        .collect();
    assert_eq!(slices, [2..7, 7..12, 12..17, 17..22]);
    assert_eq!(layout.areas(0).first(), Some(&(2 * PAGE..22 * PAGE)));
    assert_eq!(layout.unit(3, 3), Some(3));
    assert_eq!(layout.unit(3, 4), None);
    assert_eq!(layout.unit(2, 0), None);
}

#[test]
fn a_page_of_two_slices_belongs_to_both() {
    let layout = Layout::new(&[experts(0, 3, 100, 3 * PAGE)], PAGE).unwrap();
    let middle = &layout.slices(1)[0];
    assert_eq!((middle.pages.clone(), middle.own.clone()), (3..7, 4..6));
    assert_eq!(middle.before, Some(SharedPage { page: 3, unit: 0 }));
    assert_eq!(middle.after, Some(SharedPage { page: 6, unit: 2 }));
    // No other expert needs the first one's first page.
    assert_eq!(layout.slices(0)[0].own, 0..3);
}

#[test]
fn a_page_with_a_dense_tensor_is_always_held() {
    let tensors = [
        other(TensorKind::Dense, 0, PAGE + 8),
        experts(0, 2, PAGE + 32, 4 * PAGE),
    ];
    let layout = Layout::new(&tensors, PAGE).unwrap();
    assert_eq!(layout.held(0), &[PageRange { start: 0, end: 2 }]);
    assert_eq!(layout.slices(0)[0].own, 2..5);
    assert_eq!(layout.held_bytes(), 2 * PAGE);
}

#[test]
fn no_memory_is_laid_over_what_stays_mapped() {
    let tensors = [
        experts(0, 2, 0, 4 * PAGE),
        other(TensorKind::Mapped, 8 * PAGE + 8, PAGE),
        experts(1, 2, 9 * PAGE + 32, 4 * PAGE),
    ];
    let layout = Layout::new(&tensors, PAGE).unwrap();
    assert_eq!(layout.areas(0), [0..8 * PAGE, 10 * PAGE..18 * PAGE]);
    assert_eq!(layout.slices(2)[0].own.start, 10);
}

#[test]
fn the_least_cache_holds_two_layers_and_a_token() {
    let two = [
        experts(0, 4, 0, 4 * PAGE),
        experts(1, 4, 16 * PAGE, 4 * PAGE),
    ];
    let layout = Layout::new(&two, PAGE).unwrap();
    assert_eq!(layout.least_bytes(1), 32 * PAGE, "two whole layers");
    let many: Vec<_> = (0..10)
        .map(|n| experts(n, 4, u64::from(n) * 16 * PAGE, 4 * PAGE))
        .collect();
    let layout = Layout::new(&many, PAGE).unwrap();
    assert_eq!(
        layout.least_bytes(2),
        80 * PAGE,
        "half of each of ten layers"
    );
}

#[test]
fn what_cannot_be_paged_is_refused() {
    let refused = |tensors: &[Tensor]| Layout::new(tensors, PAGE).unwrap_err();
    assert_eq!(
        refused(&[other(TensorKind::Dense, 0, 8)]),
        LayoutError::NoExperts
    );
    assert_eq!(
        refused(&[experts(1, 4, 0, PAGE)]),
        LayoutError::TooSmall { bytes: PAGE }
    );
    let mut uneven = experts(1, 3, 0, 4 * PAGE);
    uneven.bytes += 1;
    assert_eq!(refused(&[uneven]), LayoutError::Uneven { layer: 1 });
    let two = [
        experts(1, 3, 0, 4 * PAGE),
        experts(1, 4, 12 * PAGE, 4 * PAGE),
    ];
    assert_eq!(refused(&two), LayoutError::Contradictory { layer: 1 });
    assert_eq!(refused(&[experts(1, 0, 0, 0)]), LayoutError::NoExperts);
}

proptest! {
    /// Of each slice, each byte is in a page that comes with it, or one that stays.
    #[test]
    fn every_byte_of_a_slice_has_an_owner(
        gaps in prop::collection::vec((0u64..200, 2 * PAGE..9 * PAGE, 1u32..5, 0u8..3), 1..12),
    ) {
        let (mut at, mut tensors) = (0, Vec::new());
        for (layer, (gap, bytes, count, kind)) in (0u32..).zip(gaps) {
            at = (at + gap).next_multiple_of(32);
            tensors.push(match kind {
                0 => experts(layer, count, at, bytes),
                1 => other(TensorKind::Dense, at, bytes),
                _ => other(TensorKind::Mapped, at, bytes),
            });
            at += tensors.last().unwrap().bytes;
        }
        tensors.push(experts(99, 2, at + 5, 3 * PAGE));
        let layout = Layout::new(&tensors, PAGE).unwrap();
        let mut owners = std::collections::HashMap::new();
        for unit in 0..u32::try_from(layout.slices.len()).unwrap() {
            for slice in layout.slices(unit) {
                for page in slice.own.clone() {
                    prop_assert_eq!(owners.insert(page, unit), None, "page {} has one owner", page);
                    let laid = layout.areas(0).iter().any(|area| area.contains(&(page * PAGE)));
                    prop_assert!(laid);
                }
                for page in slice.pages.clone().filter(|page| !slice.own.contains(page)) {
                    let shared = [slice.before, slice.after].into_iter().flatten().any(|shared| shared.page == page);
                    let held = layout.held(0).iter().any(|run| run.contains(&page));
                    let laid = layout.areas(0).iter().any(|area| area.contains(&(page * PAGE)));
                    prop_assert!(shared || held || !laid, "page {} of unit {}", page, unit);
                }
            }
        }
    }
}
