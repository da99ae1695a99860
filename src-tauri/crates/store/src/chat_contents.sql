-- JSON: a `core::chat::settings::AnswerSettings`.
ALTER TABLE chats ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
CREATE TABLE presets (
    name TEXT PRIMARY KEY,
    -- As in `chats`.
    settings TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- The files of messages: a `core::chat::Part` names them by hash.
CREATE TABLE attachments (
    id INTEGER PRIMARY KEY,
    chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    -- In hexadecimal.
    sha256 TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (chat_id, sha256)
) STRICT;
