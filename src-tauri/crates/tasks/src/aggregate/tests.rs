use super::*;
use proptest::prelude::*;
use serde_json::json;

fn counted(lines: &str) -> Aggregate {
    let mut counter = Counter::default();
    lines.lines().for_each(|line| counter.line(line.as_bytes()));
    counter.done()
}

const DAY: &str = r#"{"time":"2026-11-22T08:00","level":"info","msg":"backup 1 done","took_s":30}
{"time":"2026-11-22T02:00","level":"info","msg":"backup 2 done","took_s":10}
not json

{"time":"2026-11-22T09:00","level":"error","msg":"disk 7 is full"}
[1, 2]
{"time":"2026-11-22T10:00","level":"info","msg":"backup 3 done","took_s":20.5}
{"metric":"cpu","value":0.25}
{"kind":"job","status":"ok"}
{"kind":"job","status":"failed","reason":"timeout"}"#;

#[test]
fn lines_are_grouped_and_unreadable_ones_counted() {
    let day = counted(DAY);
    assert_eq!(
        (day.entries, day.malformed, day.first_malformed),
        (7, 2, Some(3))
    );
    assert_eq!(day.from.as_deref(), Some("2026-11-22T02:00"));
    assert_eq!(day.to.as_deref(), Some("2026-11-22T10:00"));
    assert_eq!(
        day.outcomes,
        BTreeMap::from([("failed".to_owned(), 1), ("ok".to_owned(), 1)])
    );
    let groups: Vec<_> = day
        .groups
        .iter()
        .map(|group| (&*group.message, group.count))
        .collect();
    assert_eq!(
        groups,
        [("disk # is full", 1), ("backup # done", 3), ("timeout", 1)]
    );
    let backups = &day.groups[1];
    assert_eq!(backups.first.as_deref(), Some("2026-11-22T02:00"));
    assert_eq!(backups.last.as_deref(), Some("2026-11-22T10:00"));
    assert_eq!(backups.example, "backup 3 done");
    let took = &day.metrics[0];
    assert_eq!((&*took.name, took.count), ("took_s", 3));
    assert_eq!(
        (took.min, took.median, took.max, took.last),
        (10.0, 20.5, 30.0, 20.5)
    );
}

#[test]
fn the_summary_starts_with_errors_and_is_bounded() {
    let day = counted(DAY);
    let all = day.render(10_000);
    let lines: Vec<_> = all.lines().collect();
    assert_eq!(
        lines[0],
        "7 entries, from 2026-11-22T02:00 to 2026-11-22T10:00; 2 lines could not be read"
    );
    assert_eq!(lines[1], "outcomes: failed 1, ok 1");
    assert_eq!(lines[2], "1× error: disk 7 is full [2026-11-22T09:00]");
    assert_eq!(
        lines[3],
        "metric took_s: 3 values, min 10, median 20.5, max 30, last 20.5"
    );
    assert!(!all.contains("more kinds"), "{all}");
    let short = day.render(250);
    assert!(short.len() <= 250 && short.contains("disk 7"), "{short}");
    assert!(short.ends_with("more kinds of lines\n"), "{short}");
}

#[test]
fn ten_thousand_kinds_stay_within_the_limits() {
    let mut counter = Counter::default();
    let letters = |mut n: usize| {
        let mut word = String::new();
        for _ in 0..4 {
            word.push(char::from(b'a' + u8::try_from(n % 26).unwrap()));
            n /= 26;
        }
        word
    };
    for n in 0..12_000 {
        counter.entry(&json!({"msg": letters(n), format!("m{}", letters(n)): 1}));
    }
    let day = counter.done();
    assert_eq!((day.groups.len(), day.more_groups), (GROUPS, 11_900));
    assert_eq!((day.metrics.len(), day.more_metrics), (METRICS, 11_900));
    assert!(day.render(2000).len() <= 2000);
}

proptest! {
    #[test]
    fn any_line_is_accepted(lines in proptest::collection::vec("(\\PC{0,40}|\\{\"(msg|at|level|x)\":(1e999|-0|\"\\PC{0,9}\"|null|\\{\\})\\})", 0..9)) {
        let mut counter = Counter::default();
        for line in &lines {
            counter.line(line.as_bytes());
        }
        let day = counter.done();
        let full = lines.iter().filter(|line| !line.trim_ascii().is_empty()).count() as u64;
        prop_assert_eq!(day.entries + day.malformed, full);
        let _ = day.render(100);
    }
}

#[test]
fn a_brief_names_something_of_what_is_wrong() {
    let day = counted(DAY);
    for (brief, reported) in [
        ("Two disks are full.", true),
        ("1 Fehler.", true),
        ("There were errors.", false),
        ("There were no errors.", false),
        ("All is well with the rest.", false),
        ("the brief", false),
    ] {
        assert_eq!(day.is_reported_in(brief), reported, "{brief}");
    }
    let calm = counted(r#"{"level":"info","msg":"backup done"}"#);
    assert!(calm.is_reported_in("All is well."));
    // Nothing to compare: a bare error, and a script without spaces.
    let bare = counted(r#"{"level":"error","msg":"error"}"#);
    assert!(bare.is_reported_in("There were errors."));
    let other = counted(r#"{"level":"error","msg":"磁盘空间已满"}"#);
    assert!(other.is_reported_in("All is well."));
}
