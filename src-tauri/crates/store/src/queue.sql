CREATE TABLE jobs (
    -- The order in which they came.
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    -- The owner: the name of an API key; empty: any client on this machine.
    owner TEXT NOT NULL,
    idempotency_key TEXT,
    fingerprint TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    not_before_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    attempts INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    -- How often it was begun: only who began it last may say how it ended.
    claim INTEGER NOT NULL,
    path TEXT NOT NULL,
    headers TEXT NOT NULL,
    -- Empty once it has ended.
    body BLOB NOT NULL,
    status INTEGER,
    answer_headers TEXT,
    answer BLOB,
    error TEXT,
    -- Whether a client has received its end.
    told INTEGER NOT NULL,
    webhook TEXT,
    webhook_state TEXT,
    webhook_attempts INTEGER NOT NULL,
    webhook_due_ms INTEGER,
    size INTEGER NOT NULL GENERATED ALWAYS AS (1024 + length(body) + coalesce(length(answer), 0)) STORED
) STRICT;
CREATE UNIQUE INDEX jobs_by_key ON jobs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_in_turn ON jobs (priority DESC, seq, not_before_ms) WHERE state = 'waiting';
CREATE INDEX jobs_by_due ON jobs (not_before_ms) WHERE state = 'waiting';
CREATE INDEX jobs_by_deadline ON jobs (deadline_ms) WHERE state = 'waiting';
CREATE INDEX jobs_by_end ON jobs (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX jobs_by_webhook ON jobs (webhook_due_ms) WHERE webhook_due_ms IS NOT NULL;
CREATE INDEX jobs_by_state ON jobs (state, seq);
CREATE INDEX jobs_by_size ON jobs (size);
