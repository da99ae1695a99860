CREATE TABLE keys (
    name TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    created_ms INTEGER NOT NULL,
    last_used_ms INTEGER,
    revoked_ms INTEGER,
    requests_per_minute INTEGER,
    tokens_per_day INTEGER,
    at_once INTEGER,
    tokens_missing INTEGER NOT NULL,
    tokens_at_ms INTEGER NOT NULL
) STRICT;
