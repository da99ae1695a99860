use super::*;
use serde_json::json;

fn read(value: Value) -> Option<Entry> {
    Entry::from_fields(value.as_object().unwrap())
}

/// The kind, the message and the time of a line, with `-` for what it lacks.
fn seen(line: &str) -> [String; 3] {
    let entry = crate::line::fields(line.as_bytes())
        .as_ref()
        .and_then(Entry::from_fields);
    let entry = entry.unwrap_or_else(|| panic!("{line}"));
    let time = entry.time.map(|time| time.to_string());
    [entry.kind, entry.message, time].map(|field| field.unwrap_or_else(|| "-".to_owned()))
}

/// A line of each, with its kind, its message and its time.
const LINES: [(&str, [&str; 3]); 24] = [
    // journalctl -o json
    (
        r#"{"__CURSOR":"s=4e9c;i=81","__REALTIME_TIMESTAMP":"1763769600123456","__MONOTONIC_TIMESTAMP":"88123456","_BOOT_ID":"0f1c","PRIORITY":"3","SYSLOG_FACILITY":"3","SYSLOG_IDENTIFIER":"sshd","_SYSTEMD_UNIT":"ssh.service","_PID":"871","_TRANSPORT":"syslog","MESSAGE":"error: kex_exchange_identification: Connection closed"}"#,
        [
            "error",
            "sshd: error: kex_exchange_identification: Connection closed",
            "2025-11-22T00:00:00Z",
        ],
    ),
    (
        r#"{"__REALTIME_TIMESTAMP":"1763769601000000","PRIORITY":"6","_SYSTEMD_UNIT":"web.service","MESSAGE":[27,91,51,50,109,102,195,188,114,32,255,10]}"#,
        [
            "info",
            "web.service: \u{1b}[32mfür \u{fffd}",
            "2025-11-22T00:00:01Z",
        ],
    ),
    (
        r#"{"__REALTIME_TIMESTAMP":"1763769601000000","PRIORITY":"4","SYSLOG_IDENTIFIER":"kernel","MESSAGE":null}"#,
        ["warning", "-", "2025-11-22T00:00:01Z"],
    ),
    // syslog-ng
    (
        r#"{"PROGRAM":"cron","PRIORITY":"err","MESSAGE":"job failed","HOST":"a","DATE":"2025-11-22T08:00:00+00:00"}"#,
        ["error", "cron: job failed", "2025-11-22T08:00:00+00:00"],
    ),
    // pino
    (
        r#"{"level":50,"time":1763769600123,"pid":657,"hostname":"a.local","msg":"payment failed","err":{"type":"Error","message":"card declined","stack":"Error: card"}}"#,
        ["error", "payment failed", "2025-11-22T00:00:00Z"],
    ),
    (
        r#"{"level":30,"time":"2025-11-22T00:00:00.123Z","name":"shop","msg":"listening"}"#,
        ["info", "shop: listening", "2025-11-22T00:00:00.123Z"],
    ),
    (
        r#"{"level":50,"time":1763769600123,"err":{"message":"card declined"}}"#,
        ["error", "card declined", "2025-11-22T00:00:00Z"],
    ),
    // bunyan
    (
        r#"{"name":"myapp","hostname":"banana.local","pid":40161,"level":60,"msg":"out of memory","time":"2025-11-22T18:46:23.851Z","v":0}"#,
        ["fatal", "myapp: out of memory", "2025-11-22T18:46:23.851Z"],
    ),
    // GELF
    (
        r#"{"version":"1.1","host":"a","short_message":"disk is full","timestamp":1763769600.3072,"level":1,"_user_id":9001}"#,
        ["alert", "disk is full", "2025-11-22T00:00:00Z"],
    ),
    // zap, and as it is set up for development
    (
        r#"{"level":"warn","ts":1763769600.1234,"caller":"web/run.go:7","msg":"slow request"}"#,
        ["warn", "slow request", "2025-11-22T00:00:00Z"],
    ),
    (
        r#"{"L":"DPANIC","T":"2025-11-22T08:00:00.000Z","C":"web/run.go:7","M":"lost a lock"}"#,
        ["DPANIC", "lost a lock", "2025-11-22T08:00:00.000Z"],
    ),
    // logrus, slog
    (
        r#"{"level":"error","msg":"no route","time":"2025-11-22T08:00:00Z"}"#,
        ["error", "no route", "2025-11-22T08:00:00Z"],
    ),
    // tracing
    (
        r#"{"timestamp":"2025-11-22T08:00:00.1Z","level":"WARN","fields":{"message":"retrying","attempt":3},"target":"app::db"}"#,
        ["WARN", "retrying", "2025-11-22T08:00:00.1Z"],
    ),
    // structlog, python-json-logger
    (
        r#"{"user":"ada","event":"login failed","level":"warning","timestamp":"2025-11-22T08:00:00Z"}"#,
        ["warning", "login failed", "2025-11-22T08:00:00Z"],
    ),
    (
        r#"{"asctime":"2025-11-22 08:00:00,123","levelname":"CRITICAL","levelno":50,"lineno":7,"message":"no disk"}"#,
        ["CRITICAL", "no disk", "2025-11-22 08:00:00,123"],
    ),
    // log4j
    (
        r#"{"instant":{"epochSecond":1763769600,"nanoOfSecond":1},"thread":"main","level":"ERROR","loggerName":"a.B","message":"no bean"}"#,
        ["ERROR", "no bean", "2025-11-22T00:00:00Z"],
    ),
    // Serilog
    (
        r#"{"@t":"2025-11-22T08:00:00Z","@mt":"User {Name} failed","@l":"Error","Name":"ada"}"#,
        ["Error", "User {Name} failed", "2025-11-22T08:00:00Z"],
    ),
    // Docker
    (
        r#"{"log":"ready to accept connections\n","stream":"stderr","time":"2025-11-22T08:00:00.5Z"}"#,
        ["-", "ready to accept connections", "2025-11-22T08:00:00.5Z"],
    ),
    // Elastic, both ways to write it
    (
        r#"{"@timestamp":"2025-11-22T08:00:00Z","log.level":"error","message":"down","service.name":"shop"}"#,
        ["error", "shop: down", "2025-11-22T08:00:00Z"],
    ),
    (
        r#"{"@timestamp":"2025-11-22T08:00:00Z","log":{"level":"error"},"message":"down","service":{"name":"shop"}}"#,
        ["error", "shop: down", "2025-11-22T08:00:00Z"],
    ),
    // Google Cloud
    (
        r#"{"severity":"CRITICAL","textPayload":"quota exceeded","timestamp":"2025-11-22T08:00:00Z"}"#,
        ["CRITICAL", "quota exceeded", "2025-11-22T08:00:00Z"],
    ),
    (
        r#"{"severity":"ERROR","jsonPayload":{"message":"no quota"},"timestamp":"2025-11-22T08:00:00Z"}"#,
        ["ERROR", "no quota", "2025-11-22T08:00:00Z"],
    ),
    // OpenTelemetry
    (
        r#"{"timeUnixNano":"1763769600123456789","severityNumber":17,"severityText":"Error","body":{"stringValue":"timed out"}}"#,
        ["Error", "timed out", "2025-11-22T00:00:00Z"],
    ),
    (
        r#"{"Timestamp":"2025-11-22T08:00:00Z","SeverityNumber":21,"Body":"killed"}"#,
        ["fatal", "killed", "2025-11-22T08:00:00Z"],
    ),
];

#[test]
fn the_lines_of_common_loggers_are_read() {
    for (line, expected) in LINES {
        assert_eq!(seen(line), expected, "{line}");
        // What only describes a line is no measurement.
        let fields = crate::line::fields(line.as_bytes()).unwrap();
        let metrics = Entry::from_fields(&fields).unwrap().metrics;
        assert_eq!(metrics, [], "{line}");
    }
}

#[test]
fn levels_that_are_numbers_have_words() {
    for (level, expected) in [
        (json!({"level": 0}), Some("emergency")),
        (json!({"level": 7}), Some("debug")),
        (json!({"level": 10}), Some("trace")),
        (json!({"level": 35}), Some("info")),
        (json!({"level": "40"}), Some("warn")),
        (json!({"PRIORITY": "2"}), Some("critical")),
        (json!({"level": 400, "level_name": "ERROR"}), Some("ERROR")),
        (json!({"severityNumber": 1}), Some("trace")),
        (json!({"severityNumber": 24}), Some("fatal")),
        // Of a task, of water, and of nothing.
        (json!({"priority": 1}), None),
        (json!({"level": 3.5}), None),
        (json!({"level": 8}), None),
        (json!({"severityNumber": 0, "x": 1}), None),
    ] {
        let entry = read(level.clone()).unwrap();
        assert_eq!(entry.kind.as_deref(), expected, "{level}");
    }
    let lake = read(json!({"level": 3.5})).unwrap();
    assert_eq!(lake.metrics, [("level".to_owned(), 3.5)]);
}

#[test]
fn numbers_since_1970_are_times_in_any_unit() {
    let seen = |value: Value| EntryTime::parse(&value).unwrap().to_string();
    for (value, expected) in [
        (json!(1_709_164_800), "2024-02-29T00:00:00Z"),
        (json!(1_709_251_199_999_i64), "2024-02-29T23:59:59Z"),
        (json!("1709251200000000"), "2024-03-01T00:00:00Z"),
        (json!(4_107_542_399_000_000_000_i64), "2100-02-28T23:59:59Z"),
        (json!(4_107_542_400_i64), "2100-03-01T00:00:00Z"),
        (json!(951_868_800), "951868800"),
        (json!("08:00"), "08:00"),
        (json!("nan"), "nan"),
    ] {
        assert_eq!(seen(value), expected);
    }
}

#[test]
fn log_fields_are_read_by_any_common_name() {
    let entry = read(json!({
        "ts": 1763769600.5, "level": "error", "msg": "disk 3 is full", "pid": 7, "took_ms": 12
    }))
    .unwrap();
    assert_eq!(entry.kind.as_deref(), Some("error"));
    assert_eq!(entry.message.as_deref(), Some("disk 3 is full"));
    let time = EntryTime::Text("2025-11-22T00:00:00Z".to_owned());
    assert_eq!(entry.time, Some(time));
    assert_eq!(entry.metrics, [("took_ms".to_owned(), 12.0)]);

    let entry = read(json!({"metric": "cpu", "value": 0.5, "at": "2026-11-22T02:00"})).unwrap();
    assert_eq!(entry.metrics, [("cpu".to_owned(), 0.5)]);
    let entry = read(json!({"error": {"message": "no"}, "status": "failed"})).unwrap();
    assert_eq!(
        (entry.message.as_deref(), entry.outcome.as_deref()),
        (Some("no"), Some("failed"))
    );
    assert_eq!(read(json!({})), None);
    assert_eq!(read(json!({"at": 1, "pid": 2, "msg": " "})), None);
}

#[test]
fn similar_messages_share_a_template() {
    for (message, is) in [
        ("request 17 took 3.5 s", "request # took # s"),
        ("job 9f86d081-884c-7d65 died", "job # died"),
        ("0xdeadbeef12 freed at 10:30:01", "# freed at #"),
        ("decade of facades", "decade of facades"),
        ("cpu0 at 70%", "cpu# at #%"),
        ("added", "added"),
        ("2026-11-22 ok", "# ok"),
        ("", ""),
    ] {
        assert_eq!(template(message), is);
    }
}

#[test]
fn times_of_different_formats_have_no_order() {
    let text = |text: &str| EntryTime::Text(text.to_owned());
    assert_eq!(
        text("2026-01-02").order(&text("2026-01-10")),
        Some(Ordering::Less)
    );
    assert_eq!(EntryTime::Number(1.0).order(&text("1")), None);
    assert_eq!(EntryTime::Number(1.0).to_string(), "1");
}
