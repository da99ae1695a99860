use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Next(u64),
    Claim(usize, usize),
    GiveBack(usize),
    Relieve(usize, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1u64..(8 << 20)).prop_map(Step::Next),
        (0usize..8, 1usize..(3 << 20)).prop_map(|(at, most)| Step::Claim(at, most)),
        (0usize..8).prop_map(Step::GiveBack),
        (0usize..8, any::<bool>()).prop_map(|(at, all)| Step::Relieve(at, all)),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn every_byte_is_claimed_exactly_once(steps in steps()) {
        let total = 20u64 << 20;
        let mut plan = Plan::new(vec![(0, total)]);
        let mut active: Vec<Arc<Piece>> = Vec::new();
        let mut claimed = super::super::ranges::Ranges::default();
        let mut bytes = 0;
        let mut claim = |piece: &Piece, most: usize| {
            let (at, length) = piece.claim(most);
            claimed.insert(at, at + length as u64);
            bytes += length as u64;
            assert_eq!(claimed.bytes(), bytes, "a byte was claimed twice");
        };
        for step in steps {
            match step {
                Step::Next(size) => active.extend(plan.next(size)),
                Step::Claim(at, most) if at < active.len() => claim(&active[at], most),
                Step::GiveBack(at) if at < active.len() => plan.give_back(&active.remove(at)),
                Step::Relieve(at, all) if at < active.len() => {
                    let relief = if all { Relief::All } else { Relief::Half };
                    let piece = relieve(&active[at], relief);
                    active.push(piece);
                }
                _ => {}
            }
        }
        while let Some(piece) = active.pop().or_else(|| plan.next(u64::MAX >> 1)) {
            claim(&piece, usize::MAX);
        }
        prop_assert_eq!(bytes, total);
    }
}

fn busy() -> BusyPiece {
    BusyPiece {
        rest: 100 << 20,
        bytes_per_second: 1e6,
        working: Duration::from_secs(60),
        silent: Duration::ZERO,
        retaken: false,
    }
}

#[test]
fn pieces_go_front_to_back_and_leave_no_small_rest() {
    let mut plan = Plan::new(vec![(0, 5 << 20), (9 << 20, 10 << 20)]);
    assert_eq!(plan.next(2 << 20).unwrap().rest(), (0, 2 << 20));
    assert_eq!(plan.next((5 << 20) / 2).unwrap().rest(), (2 << 20, 5 << 20));
    assert_eq!(plan.next(2 << 20).unwrap().rest(), (9 << 20, 10 << 20));
    assert!(plan.next(1).is_none() && plan.is_empty());
}

#[test]
fn a_piece_follows_the_rate_of_its_connection_within_bounds() {
    assert_eq!(size_at(1.0), SMALLEST);
    assert_eq!(size_at(8e6), 12_000_000);
    assert_eq!(size_at(1e12), LARGEST);
}

#[test]
fn only_a_slow_last_piece_is_taken_over() {
    assert_eq!(relief(busy()), Some(Relief::Half));
    let fast = BusyPiece {
        bytes_per_second: 1e9,
        ..busy()
    };
    assert_eq!(relief(fast), None);
    let small = BusyPiece {
        rest: SMALLEST,
        ..busy()
    };
    assert_eq!(relief(small), None);
    let slow = BusyPiece {
        bytes_per_second: 1e4,
        ..small
    };
    assert_eq!(relief(slow), Some(Relief::All));
    for spared in [
        BusyPiece {
            retaken: true,
            ..slow
        },
        // Nothing has been measured yet.
        BusyPiece {
            working: Duration::ZERO,
            bytes_per_second: 0.0,
            ..slow
        },
        BusyPiece { rest: 0, ..slow },
    ] {
        assert_eq!(relief(spared), None);
    }
    let silent = BusyPiece {
        silent: SILENCE,
        rest: 1,
        ..busy()
    };
    assert_eq!(relief(silent), Some(Relief::All));
    assert_eq!(
        relief(BusyPiece {
            retaken: true,
            ..silent
        }),
        None
    );
}
