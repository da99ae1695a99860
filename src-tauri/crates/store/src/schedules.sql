CREATE TABLE schedules (
    name TEXT PRIMARY KEY,
    turn INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    tried_at INTEGER,
    covers_to INTEGER,
    outcome TEXT,
    failing INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
