CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tier TEXT,
    model TEXT,
    sentence TEXT NOT NULL
) STRICT;
CREATE INDEX log_of_tier ON log (tier, id);
CREATE INDEX log_by_time ON log (at_ms);
