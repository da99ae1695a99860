//! A real file, and the system's file cache.

use super::*;
use crate::{
    layout::{Tensor, TensorKind},
    platform::{
        page_bytes,
        testing::{Mapping, forget_all},
    },
};
use std::{
    fs::File,
    io::Write,
    time::{Duration, Instant},
};

const EXPERTS: u32 = 8;
const SLICE: u64 = 4 << 20;
const USED: [u32; 2] = [1, 5];

struct Model {
    _folder: tempfile::TempDir,
    file: File,
    announcer: Announcer,
}

/// Two layers in a file that is not in memory.
fn model() -> Model {
    // Beside the test: /tmp may be memory.
    let beside = std::env::current_exe().unwrap();
    let folder = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
    let path = folder.path().join("model");
    let layer = SLICE * u64::from(EXPERTS);
    let mut file = File::create(&path).unwrap();
    file.write_all(&vec![7; usize::try_from(2 * layer).unwrap()])
        .unwrap();
    file.sync_all().unwrap();
    let file = File::open(&path).unwrap();
    forget_all(&file);
    let tensors: Vec<Tensor> = (0..2)
        .map(|number| Tensor {
            file: 0,
            offset: u64::from(number) * layer,
            bytes: layer,
            kind: TensorKind::Experts {
                layer: number,
                experts: EXPERTS,
            },
        })
        .collect();
    let mapped = Mapping::of(&path).mapped();
    let layout = Layout::new(&tensors, page_bytes()).unwrap();
    Model {
        _folder: folder,
        file,
        announcer: Announcer::start(layout, vec![mapped]),
    }
}

impl Model {
    /// Waits for what is being read ahead.
    #[expect(clippy::disallowed_methods, reason = "the system does not tell")]
    fn until_present(&self, layer: u32, experts: &[u32]) {
        let begun = Instant::now();
        let unit = |&expert| self.announcer.layout.unit(layer, expert).unwrap();
        while experts
            .iter()
            .map(unit)
            .any(|unit| self.announcer.absent_bytes(unit) > 0)
        {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
#[cfg_attr(
    target_vendor = "apple",
    ignore = "nothing there empties the file cache"
)]
fn chosen_experts_are_read_before_they_are_used() {
    let model = model();
    let announcer = &model.announcer;
    assert!(announcer.tells, "the file was in memory");
    announcer.need(0, &USED, false).unwrap();
    model.until_present(0, &USED);
    let picture = announcer.picture();
    let is_there = |expert: u32| picture.layers[0].as_bytes()[expert as usize] == b'5';
    assert!(USED.into_iter().all(is_there), "{picture:?}");
    assert_eq!(picture.layers[1], ".".repeat(EXPERTS as usize));
    assert!((2 * SLICE..=8 * SLICE).contains(&picture.held_bytes));
    let cost = announcer.cost();
    assert_eq!((cost.stats.hits, cost.stats.misses), (0, 2));
    assert!(cost.read_bytes > 0 && cost.read_bytes <= 2 * SLICE);

    announcer.need(0, &USED, true).unwrap();
    assert_eq!(announcer.cost().stats.hits, 2);
    let all: Vec<u32> = (0..EXPERTS).collect();
    model.until_present(1, &all);
    let unknown = announcer.need(0, &[EXPERTS], false).unwrap_err();
    assert_eq!(unknown.code, Code::Internal);
}

#[test]
#[cfg_attr(
    target_vendor = "apple",
    ignore = "nothing there empties the file cache"
)]
fn it_steps_aside_while_all_is_there_and_comes_back() {
    let model = model();
    let announcer = &model.announcer;
    announcer.need(0, &USED, false).unwrap();
    model.until_present(0, &USED);
    for _ in 0..2 * CALM {
        announcer.need(0, &USED, false).unwrap();
    }
    let before = announcer.cost().stats;
    assert_eq!(before.misses, 2);
    forget_all(&model.file);
    for _ in 0..SELDOM {
        announcer.need(0, &USED, false).unwrap();
    }
    let stats = announcer.cost().stats;
    assert!(stats.misses > before.misses, "{stats:?}");
    model.until_present(0, &USED);
}
