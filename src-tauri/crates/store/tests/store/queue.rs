//! Requests that wait, on real files.

use crate::support::Fixture;
use tierbar_core::{
    Code, Error,
    download::Priority,
    keys::{ApiKey, KeyLimits},
    queue::{JobState, JobStatus, WebhookState},
};
use tierbar_store::{
    AddedJob, CanceledJob, Claim, Ending, JobAnswer, JobRequest, KeptKey, NewJob, NextJob, Room,
    Store, TokensUsed,
};

const ROOM: Room = Room {
    live: 100,
    of_one_key: 50,
    bytes: 1 << 20,
};
const FAR: u64 = 1_000_000_000;

fn job(body: &str) -> NewJob {
    NewJob {
        request: JobRequest {
            path: "/v1/chat/completions".to_owned(),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.into(),
        },
        owner: None,
        idempotency_key: None,
        fingerprint: body.to_owned(),
        priority: Priority::Normal,
        not_before_ms: 0,
        reason: None,
        deadline_ms: FAR,
        max_attempts: 3,
        webhook: None,
    }
}

async fn add(store: &Store, job: NewJob) -> JobStatus {
    add_at(store, job, 1).await
}

async fn add_at(store: &Store, job: NewJob, now_ms: u64) -> JobStatus {
    match store.add_job(job, ROOM, now_ms).await.unwrap() {
        AddedJob::New(job) => job,
        other => panic!("{other:?}"),
    }
}

async fn claim(store: &Store, now_ms: u64) -> Option<Claim> {
    match store.claim_job(ROOM, now_ms).await.unwrap() {
        NextJob::Claimed(claim) => Some(*claim),
        NextJob::Empty => None,
        NextJob::Full => panic!("full"),
    }
}

fn answer(body: &str) -> Ending {
    Ending {
        state: JobState::Done,
        answer: Some(JobAnswer {
            status: 200,
            headers: vec![("x-a".to_owned(), "b".to_owned())],
            body: body.into(),
        }),
        error: None,
    }
}

#[tokio::test]
async fn jobs_run_by_priority_then_age_once_due() {
    let fixture = Fixture::new();
    let store = fixture.store();
    for (body, priority, not_before_ms) in [
        ("low", Priority::Low, 0),
        ("first", Priority::Normal, 0),
        ("later", Priority::High, 50),
        ("second", Priority::Normal, 0),
        ("high", Priority::High, 0),
    ] {
        let job = NewJob {
            priority,
            not_before_ms,
            ..job(body)
        };
        add(&store, job).await;
    }
    assert_eq!(store.next_job_ms(FAR, true).await.unwrap(), Some(0));
    assert_eq!(store.next_job_ms(FAR, false).await.unwrap(), Some(FAR));
    let mut turns = Vec::new();
    while let Some(claim) = claim(&store, 10).await {
        assert_eq!(claim.request.headers, job("").request.headers);
        turns.push(String::from_utf8(claim.request.body).unwrap());
    }
    assert_eq!(turns, ["high", "first", "second", "low"]);
    assert_eq!(store.next_job_ms(FAR, true).await.unwrap(), Some(50));
    assert_eq!(claim(&store, 50).await.unwrap().request.body, b"later");
    assert_eq!(store.next_job_ms(FAR, true).await.unwrap(), None);
}

#[tokio::test]
async fn only_the_last_claim_ends_a_job_and_only_once() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let id = add(&store, job("a")).await.id;
    let old = claim(&store, 1).await.unwrap();
    let why = Error::new(Code::Unreachable, "connection refused");
    assert!(store.defer_job(&old, 5, Some(why), true).await.unwrap());
    let waiting = store.job(&id).await.unwrap();
    assert_eq!((waiting.state, waiting.attempts), (JobState::Waiting, 1));
    assert_eq!(waiting.reason.as_deref(), Some("connection refused"));
    assert_eq!(claim(&store, 4).await, None);
    let new = claim(&store, 5).await.unwrap();
    assert_eq!(new.attempts, 2);
    assert!(!store.end_job(&old, answer("old"), 6).await.unwrap());
    assert!(!store.defer_job(&old, 6, None, true).await.unwrap());
    assert!(store.end_job(&new, answer("new"), 7).await.unwrap());
    assert!(!store.end_job(&new, answer("newer"), 8).await.unwrap());
    let outcome = store.job_outcome(&id, false).await.unwrap();
    assert_eq!(outcome.answer, answer("new").answer);
    assert_eq!(
        (outcome.status.state, outcome.status.ended_ms),
        (JobState::Done, Some(7))
    );
    let missing = store.job("none").await.unwrap_err();
    assert_eq!(missing.code, Code::NotFound);
}

#[tokio::test]
async fn an_uncounted_attempt_still_voids_the_old_claim() {
    let fixture = Fixture::new();
    let store = fixture.store();
    add(&store, job("a")).await;
    let old = claim(&store, 1).await.unwrap();
    assert!(store.defer_job(&old, 1, None, false).await.unwrap());
    let new = claim(&store, 1).await.unwrap();
    assert_eq!((old.attempts, new.attempts), (1, 1));
    assert!(!store.end_job(&old, answer("old"), 2).await.unwrap());
    assert!(store.end_job(&new, answer("new"), 2).await.unwrap());
}

#[tokio::test]
async fn a_job_of_a_killed_host_is_queued_again() {
    let fixture = Fixture::new();
    let id = add(&fixture.store(), job("a")).await.id;
    let mut lost = Vec::new();
    for attempt in 1..=3 {
        let store = fixture.store();
        store.recover_jobs(FAR / 2).await.unwrap();
        let found = store.job(&id).await.unwrap();
        assert_eq!(
            (found.state, found.attempts),
            (JobState::Waiting, attempt - 1)
        );
        lost.push(claim(&store, found.not_before_ms).await.unwrap());
    }
    let store = fixture.store();
    store.recover_jobs(FAR / 2).await.unwrap();
    let failed = store.job_outcome(&id, true).await.unwrap();
    assert_eq!(failed.status.state, JobState::Failed);
    assert_eq!(failed.error.unwrap().code, Code::WorkerCrashed);
    for claim in lost {
        assert!(!store.end_job(&claim, answer("lost"), FAR).await.unwrap());
    }
}

#[tokio::test]
async fn an_idempotency_key_names_one_job_of_its_owner() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let keyed = |body: &str| NewJob {
        idempotency_key: Some("k".to_owned()),
        ..job(body)
    };
    let first = add(&store, keyed("a")).await;
    let again = store.add_job(keyed("a"), ROOM, 2).await.unwrap();
    assert_eq!(again, AddedJob::Known(first.clone()));
    let found = store.known_job(keyed("a")).await.unwrap();
    assert_eq!(found, Some(AddedJob::Known(first.clone())));
    let other = store.add_job(keyed("b"), ROOM, 2).await.unwrap();
    assert_eq!(other, AddedJob::OtherRequest);
    let theirs = NewJob {
        owner: Some("phone".to_owned()),
        ..keyed("b")
    };
    assert_ne!(add(&store, theirs).await.id, first.id);
    assert_eq!(store.known_job(job("a")).await.unwrap(), None);
}

#[tokio::test]
async fn a_canceled_job_is_never_answered() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let id = add(&store, job("a")).await.id;
    let running = claim(&store, 1).await.unwrap();
    let CanceledJob::Now(cancelled) = store.cancel_job(&id, false, 2).await.unwrap() else {
        panic!("it ran");
    };
    assert_eq!(cancelled.state, JobState::Cancelled);
    assert!(!store.end_job(&running, answer("late"), 3).await.unwrap());
    assert_eq!(store.job_outcome(&id, true).await.unwrap().answer, None);
    assert_eq!(
        store.cancel_job(&id, false, 4).await.unwrap(),
        CanceledJob::Removed
    );
    let gone = store.cancel_job(&id, false, 5).await.unwrap_err();
    assert_eq!(gone.code, Code::NotFound);
}

#[tokio::test]
async fn a_full_queue_refuses_until_an_answer_is_fetched() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let one = Room { live: 1, ..ROOM };
    let id = add(&store, job("a")).await.id;
    let full = store.add_job(job("b"), one, 1).await.unwrap_err();
    assert_eq!(full.code, Code::Overloaded);
    let running = claim(&store, 1).await.unwrap();
    let full = store.add_job(job("b"), one, 1).await.unwrap_err();
    assert!(full.message.contains("1 requests are waiting"), "{full}");

    let large = "x".repeat(1 << 20);
    assert!(store.end_job(&running, answer(&large), 2).await.unwrap());
    let full = store.add_job(job("b"), one, 1).await.unwrap_err();
    assert!(full.message.contains("1 of 1 MiB"), "{full}");
    let glanced = store.job_outcome(&id, true).await.unwrap();
    assert_eq!(glanced.answer.unwrap().body.len(), large.len());
    let full = store.add_job(job("b"), one, 1).await.unwrap_err();
    assert_eq!(full.code, Code::Overloaded, "its answer was not fetched");
    store.job_outcome(&id, false).await.unwrap();
    let added = store.add_job(job("b"), one, 1).await.unwrap();
    assert!(matches!(added, AddedJob::New(_)));
    assert_eq!(store.job(&id).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn one_key_takes_only_its_share_of_the_queue() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let room = Room {
        live: 3,
        of_one_key: 1,
        ..ROOM
    };
    let of = |owner: Option<&str>| NewJob {
        owner: owner.map(str::to_owned),
        ..job("a")
    };
    let added = async |owner| store.add_job(of(owner), room, 1).await;
    added(Some("phone")).await.unwrap();
    let full = added(Some("phone")).await.unwrap_err();
    assert_eq!(full.code, Code::Overloaded);
    assert!(full.message.contains("already has 1 requests"), "{full}");
    added(Some("laptop")).await.unwrap();
    added(None).await.unwrap();
    let full = added(Some("tablet")).await.unwrap_err();
    assert!(full.message.contains("3 requests are waiting"), "{full}");
    // What has ended takes no place.
    let running = claim(&store, 2).await.unwrap();
    assert!(store.end_job(&running, answer("b"), 3).await.unwrap());
    added(Some("phone")).await.unwrap();
}

#[tokio::test]
async fn older_jobs_go_to_the_key_that_they_came_with() {
    let fixture = Fixture::new();
    let ids = {
        let store = fixture.store();
        for (name, hash, created) in [("phone", 0xab, 5), ("laptop", 0xcd, 20)] {
            let key = ApiKey {
                name: name.to_owned(),
                limits: KeyLimits::default(),
                created_ms: created,
                last_used_ms: None,
                revoked_ms: None,
            };
            let kept = KeptKey {
                key,
                hash: [hash; 32],
                tokens: TokensUsed::default(),
            };
            store.add_key(kept).await.unwrap();
        }
        let mut ids = Vec::new();
        for owner in ["phone", "laptop", "deleted", ""] {
            let job = NewJob {
                owner: Some(owner.to_owned()),
                ..job("a")
            };
            match store.add_job(job, ROOM, 10).await.unwrap() {
                AddedJob::New(job) => ids.push(job.id),
                other => panic!("{other:?}"),
            }
        }
        ids
    };
    rusqlite::Connection::open(fixture.path())
        .unwrap()
        .execute_batch(
            "DROP TABLE agent_files; DROP TABLE agent_grants; DROP TABLE ledger; DROP TABLE grades;
             DROP TABLE passages_to_index; DROP TABLE passage_characters; DROP TRIGGER passage_characters_removed;
             DROP TRIGGER passage_added; DROP TRIGGER passage_removed; DROP TABLE passage_words; DROP TABLE document_vectors;
             DROP TABLE document_sketches; DROP TABLE files_to_sketch; DROP TABLE document_passages; DROP TABLE document_files;
             DROP TABLE document_sources; DROP TABLE removed_passages;
             DROP TABLE messages_to_index; DROP TABLE message_characters; DROP TRIGGER message_characters_rewritten;
             DROP TRIGGER message_characters_removed; DROP INDEX chats_listed; ALTER TABLE messages DROP COLUMN times;
             ALTER TABLE messages DROP COLUMN failure;
             DROP TRIGGER message_rewritten; DROP TRIGGER message_removed;
             DROP TRIGGER chat_added; DROP TRIGGER chat_renamed; DROP TRIGGER chat_removed; DROP TABLE message_words;
             DROP TABLE title_words; DROP VIEW message_texts; DROP INDEX chats_of_source; DROP INDEX chats_deleted;
             ALTER TABLE chats DROP COLUMN pinned; ALTER TABLE chats DROP COLUMN deleted_at; ALTER TABLE chats DROP COLUMN source;
             ALTER TABLE messages DROP COLUMN experts; ALTER TABLE messages DROP COLUMN context;
             ALTER TABLE messages DROP COLUMN left_out; ALTER TABLE chats DROP COLUMN when_full;
             ALTER TABLE chats DROP COLUMN settings; DROP TABLE presets;
             DROP TABLE message_files; DROP TABLE attachments; DROP TRIGGER message_with_files;
             ALTER TABLE minutes DROP COLUMN models_mean; ALTER TABLE minutes DROP COLUMN models_max;
             ALTER TABLE minutes DROP COLUMN decode_mean; ALTER TABLE minutes DROP COLUMN decode_max;
             PRAGMA user_version = 9;",
        )
        .unwrap();
    let store = fixture.store();
    let [phone, laptop] = ["ab", "cd"].map(|byte| Some(byte.repeat(32)));
    let name = |name: &str| Some(name.to_owned());
    for (id, owner, theirs) in [
        (&ids[0], phone, true),
        (&ids[0], name("phone"), false),
        // This key is younger than the job, which an older one of its name left.
        (&ids[1], laptop, false),
        (&ids[1], name("laptop"), false),
        (&ids[2], name("deleted"), false),
        (&ids[3], None, true),
    ] {
        let checked = store.check_job_owner(id, owner.clone()).await;
        assert_eq!(checked.is_ok(), theirs, "{owner:?}");
    }
}

#[tokio::test]
async fn no_job_starts_without_room_for_its_answer() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let id = add(&store, job("a")).await.id;
    add(&store, job("b")).await;
    let first = claim(&store, 1).await.unwrap();
    let large = "x".repeat(1 << 20);
    assert!(store.end_job(&first, answer(&large), 2).await.unwrap());
    assert_eq!(store.claim_job(ROOM, 3).await.unwrap(), NextJob::Full);
    store.job_outcome(&id, false).await.unwrap();
    assert_eq!(claim(&store, 3).await.unwrap().request.body, b"b");
}

#[tokio::test]
async fn jobs_end_at_their_deadline_and_answers_expire() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let late = NewJob {
        deadline_ms: 100,
        ..job("late")
    };
    let id = add(&store, late).await.id;
    assert_eq!(store.tidy_jobs(1000, 99).await.unwrap(), [""; 0]);
    assert_eq!(claim(&store, 100).await, None, "its time is over");
    assert_eq!(
        store.tidy_jobs(1000, 100).await.unwrap(),
        std::slice::from_ref(&id)
    );
    let expired = store.job_outcome(&id, true).await.unwrap();
    assert_eq!(expired.status.state, JobState::Expired);
    assert_eq!(expired.error.unwrap().code, Code::WorkerTimeout);
    assert_eq!(store.next_job_ms(1000, true).await.unwrap(), Some(1100));
    store.tidy_jobs(1000, 1099).await.unwrap();
    assert!(store.job(&id).await.is_ok());
    store.tidy_jobs(1000, 1100).await.unwrap();
    assert_eq!(store.job(&id).await.unwrap_err().code, Code::NotFound);
    assert_eq!(store.count_jobs().await.unwrap(), (Vec::new(), 0));
}

#[tokio::test]
async fn a_webhook_is_due_from_the_end_until_settled() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let hooked = NewJob {
        webhook: Some("http://127.0.0.1:1/x".to_owned()),
        ..job("a")
    };
    let id = add(&store, hooked).await.id;
    assert_eq!(store.next_webhook_ms().await.unwrap(), None);
    let running = claim(&store, 1).await.unwrap();
    store.end_job(&running, answer("done"), 7).await.unwrap();
    assert_eq!(
        store.job(&id).await.unwrap().webhook,
        Some(WebhookState::Pending)
    );
    assert_eq!(store.next_webhook_ms().await.unwrap(), Some(7));
    let due = store.due_webhooks(9, 7).await.unwrap();
    assert_eq!(
        (&*due[0].id, due[0].attempts, due[0].ended_ms),
        (&*id, 0, 7)
    );
    store
        .settle_webhook(&id, WebhookState::Pending, Some(20))
        .await
        .unwrap();
    assert_eq!(store.due_webhooks(9, 19).await.unwrap(), []);
    assert_eq!(store.due_webhooks(9, 20).await.unwrap()[0].attempts, 1);
    store
        .settle_webhook(&id, WebhookState::Delivered, None)
        .await
        .unwrap();
    assert_eq!(store.next_webhook_ms().await.unwrap(), None);
    assert_eq!(
        store.job(&id).await.unwrap().webhook,
        Some(WebhookState::Delivered)
    );
}

#[tokio::test]
async fn a_jobs_text_is_deleted_once_answered() {
    let fixture = Fixture::new();
    let store = fixture.store();
    add(&store, job("the secret words")).await;
    let running = claim(&store, 1).await.unwrap();
    store.end_job(&running, answer("done"), 2).await.unwrap();
    let raw = rusqlite::Connection::open(fixture.path()).unwrap();
    let (body, headers): (Vec<u8>, String) = raw
        .query_row("SELECT body, headers FROM jobs", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!((&*body, &*headers), (&b""[..], "[]"));
}

#[tokio::test]
async fn jobs_are_listed_newest_first_and_counted_by_state() {
    let fixture = Fixture::new();
    let store = fixture.store();
    for body in ["a", "b", "c"] {
        add(&store, job(body)).await;
    }
    let running = claim(&store, 1).await.unwrap();
    let ids = |jobs: Vec<JobStatus>| jobs.into_iter().map(|job| job.id).collect::<Vec<_>>();
    let all = ids(store.list_jobs(None, 9).await.unwrap());
    assert_eq!((all.len(), &all[2]), (3, &running.id));
    let waiting = store.list_jobs(Some(JobState::Waiting), 1).await.unwrap();
    assert_eq!(ids(waiting), all[..1]);
    let (mut counts, bytes) = store.count_jobs().await.unwrap();
    counts.sort_by_key(|(_, count)| *count);
    assert_eq!(counts, [(JobState::Running, 1), (JobState::Waiting, 2)]);
    assert_eq!(bytes, 3 * 1025);
}

#[tokio::test]
async fn a_clock_set_back_stops_no_wait() {
    const HOUR: u64 = 3_600_000;
    let fixture = Fixture::new();
    let store = fixture.store();
    let (now, why) = (10 * HOUR, || Error::new(Code::Unreachable, "no answer"));
    add(&store, job("a")).await;
    let first = claim(&store, now).await.unwrap();
    let at = now + 1000;
    assert!(
        store
            .defer_job(&first, at, Some(why()), true)
            .await
            .unwrap()
    );
    // While the host runs, it knows by how much.
    let by = -HOUR.cast_signed();
    store.shift_job_waits(by, at - HOUR).await.unwrap();
    assert!(claim(&store, at - HOUR - 1).await.is_none());
    let second = claim(&store, at - HOUR).await.unwrap();
    assert!(
        store
            .defer_job(&second, at, Some(why()), true)
            .await
            .unwrap()
    );
    // While none runs, no wait is longer than a pause.
    let earlier = now - HOUR;
    store.recover_jobs(earlier).await.unwrap();
    let pause = u64::try_from(tierbar_core::queue::LONGEST_PAUSE.as_millis()).unwrap();
    assert!(claim(&store, earlier + pause - 1).await.is_none());
    assert!(claim(&store, earlier + pause).await.is_some());
}

#[tokio::test]
async fn a_deadline_moves_with_a_clock_that_is_set() {
    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let fixture = Fixture::new();
    let store = fixture.store();
    let lasting = |body: &str, now: u64| NewJob {
        deadline_ms: now + HOUR,
        ..job(body)
    };
    let first = add_at(&store, lasting("a", DAY), DAY).await;
    let forward = 2 * DAY + MINUTE;
    // It came before the jump was seen.
    let second = add_at(&store, lasting("b", forward), forward).await;
    let by = DAY.cast_signed();
    store.shift_job_waits(by, forward).await.unwrap();
    assert_eq!(store.tidy_jobs(DAY, forward).await.unwrap(), [""; 0]);
    let deadlines = async || {
        let (first, second) = (store.job(&first.id).await, store.job(&second.id).await);
        (first.unwrap().deadline_ms, second.unwrap().deadline_ms)
    };
    assert_eq!(deadlines().await, (2 * DAY + HOUR, forward + HOUR));
    let back = DAY + 2 * MINUTE;
    let third = add_at(&store, lasting("c", back), back).await;
    store.shift_job_waits(-by, back).await.unwrap();
    assert_eq!(deadlines().await, (DAY + HOUR, forward + HOUR - DAY));
    let third = store.job(&third.id).await.unwrap();
    assert_eq!(third.deadline_ms, back + HOUR);
    assert!(claim(&store, back).await.is_some());
}
