-- What the owner thinks of an answer. It goes with its message.
CREATE TABLE grades (
    message INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    verdict TEXT NOT NULL,
    reason TEXT,
    quant TEXT,
    level TEXT NOT NULL,
    -- JSON: a `chat::settings::AnswerSettings`.
    settings TEXT NOT NULL,
    graded_at TEXT NOT NULL,
    -- Whether the router learns from it: given since the last reset.
    is_learned INTEGER NOT NULL DEFAULT 1
) STRICT;
