//! The table of the log, on real files.

use crate::support::Fixture;
use tierbar_core::{
    ModelId, TierId,
    journal::{Entry, Filter, Kind, LogEvent},
};

fn entry(id: u64, at_ms: u64, kind: Kind, tier: Option<&str>) -> Entry {
    Entry {
        id,
        at_ms,
        what: LogEvent {
            kind,
            tier: tier.map(|tier| TierId::new(tier).unwrap()),
            model: tier.map(|_| ModelId("small".to_owned())),
            sentence: format!("number {id}"),
        },
    }
}

fn ids(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.id).collect()
}

#[tokio::test]
async fn entries_survive_a_restart_and_are_paged_newest_first() {
    let fixture = Fixture::new();
    let written: Vec<_> = (1..=7)
        .map(|id| match id % 3 {
            0 => entry(id, id * 1000, Kind::Alarm, None),
            1 => entry(id, id * 1000, Kind::Load, Some("fast")),
            _ => entry(id, id * 1000, Kind::StepDown, Some("heavy")),
        })
        .collect();
    {
        let store = fixture.store();
        assert_eq!(store.last_entry().await.unwrap(), 0);
        store.add_entries(written[..4].to_vec()).await.unwrap();
        store.add_entries(written[4..].to_vec()).await.unwrap();
        store.add_entries(Vec::new()).await.unwrap();
    }
    let store = fixture.store();
    assert_eq!(store.last_entry().await.unwrap(), 7);
    let mut all = store.entries(None, Filter::default(), 100).await.unwrap();
    all.reverse();
    assert_eq!(all, written);
    let page = store.entries(None, Filter::default(), 3).await.unwrap();
    assert_eq!(ids(&page), [7, 6, 5]);
    let next = store.entries(Some(5), Filter::default(), 3).await.unwrap();
    assert_eq!(ids(&next), [4, 3, 2]);
    let heavy = Filter::new(Some(TierId::new("heavy").unwrap()), None, "");
    let page = store.entries(None, heavy.clone(), 1).await.unwrap();
    assert_eq!(ids(&page), [5]);
    let next = store.entries(Some(5), heavy, 9).await.unwrap();
    assert_eq!(ids(&next), [2]);
    let alarms = Filter::new(None, Some(Kind::Alarm), "");
    let page = store.entries(None, alarms, 9).await.unwrap();
    assert_eq!(ids(&page), [6, 3]);
}

#[tokio::test]
async fn entries_are_limited_to_thirty_days_and_fifty_thousand() {
    const DAY: u64 = 24 * 3600 * 1000;
    let fixture = Fixture::new();
    let store = fixture.store();
    let add = async |id, at_ms| {
        let entry = entry(id, at_ms, Kind::Load, Some("fast"));
        store.add_entries(vec![entry]).await.unwrap();
    };
    add(1, 1000).await;
    add(2, 2000).await;
    add(3, 1000 + 30 * DAY).await;
    assert_eq!(
        ids(&store.entries(None, Filter::default(), 9).await.unwrap()),
        [3, 2, 1]
    );
    add(4, 1001 + 30 * DAY).await;
    assert_eq!(
        ids(&store.entries(None, Filter::default(), 9).await.unwrap()),
        [4, 3, 2]
    );
    add(50_002, 1002 + 30 * DAY).await;
    let left = ids(&store.entries(None, Filter::default(), 9).await.unwrap());
    assert_eq!(left, [50_002, 4, 3]);
}

#[tokio::test]
async fn a_clock_briefly_ahead_deletes_no_entries() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let written = (1..=100).map(|id| entry(id, id, Kind::Load, Some("fast")));
    store.add_entries(written.collect()).await.unwrap();
    let year = 365 * 24 * 3600 * 1000;
    let ahead = entry(101, year, Kind::Load, Some("fast"));
    store.add_entries(vec![ahead]).await.unwrap();
    let left = store.entries(None, Filter::default(), 1000).await.unwrap();
    assert_eq!(left.len(), 93);
}

#[tokio::test]
async fn an_unknown_kind_of_entry_is_read_as_a_note() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let written = entry(1, 1, Kind::Load, Some("fast"));
    store.add_entries(vec![written.clone()]).await.unwrap();
    let newer = rusqlite::Connection::open(fixture.path()).unwrap();
    newer
        .execute("UPDATE log SET kind = 'moon_phase'", [])
        .unwrap();
    let read = store.entries(None, Filter::default(), 1).await.unwrap();
    assert_eq!(read[0].what.kind, Kind::Note);
    assert_eq!(read[0].what.sentence, written.what.sentence);
}

#[tokio::test]
async fn a_database_without_a_log_gets_one() {
    let fixture = Fixture::of_november_2026();
    let before = rusqlite::Connection::open(fixture.path()).unwrap();
    before
        .execute_batch("DROP TABLE log; DROP TABLE jobs; DROP TABLE keys; DROP TABLE savings; DROP TABLE schedules; PRAGMA user_version = 2;")
        .unwrap();
    before.close().unwrap();
    let store = fixture.store();
    let written = entry(1, 1, Kind::Crash, Some("fast"));
    store.add_entries(vec![written.clone()]).await.unwrap();
    assert_eq!(
        store.entries(None, Filter::default(), 1).await.unwrap(),
        [written]
    );
}

#[tokio::test]
async fn loads_without_an_end_get_one_at_the_next_start() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let kinds = [
        (Kind::Load, Some("fast")),
        (Kind::Load, Some("heavy")),
        (Kind::Ready, Some("heavy")),
        (Kind::Load, Some("primary")),
        (Kind::Unload, Some("primary")),
        (Kind::Crash, Some("fast")),
        (Kind::Load, Some("fast")),
        (Kind::Ready, Some("fast")),
        (Kind::StepDown, Some("fast")),
        (Kind::Alarm, None),
    ];
    let written = (1..).zip(kinds);
    let written = written.map(|(id, (kind, tier))| entry(id, id, kind, tier));
    store.add_entries(written.collect()).await.unwrap();
    for _ in 0..2 {
        store
            .end_loads(|tier| format!("{tier} ended"))
            .await
            .unwrap();
        let kept = store.entries(None, Filter::default(), 99).await.unwrap();
        let ends = kept.iter().take_while(|entry| entry.id > 10);
        let ends: Vec<_> = ends.map(|entry| &entry.what).collect();
        let [fast, heavy] = ends[..] else {
            panic!("{ends:?}");
        };
        for (end, tier) in [(heavy, "heavy"), (fast, "fast")] {
            let id = TierId::new(tier).unwrap();
            let model = ModelId("small".to_owned());
            let sentence = format!("{tier} ended");
            assert_eq!(
                *end,
                LogEvent::for_tier(Kind::Unload, &id, Some(&model), sentence)
            );
        }
    }
}
