CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,
    created_ms INTEGER NOT NULL,
    used_ms INTEGER NOT NULL
) STRICT;
