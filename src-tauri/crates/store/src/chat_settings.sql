-- JSON: a `core::chat::settings::AnswerSettings`.
ALTER TABLE chats ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
CREATE TABLE presets (
    name TEXT PRIMARY KEY,
    -- As in `chats`.
    settings TEXT NOT NULL
) STRICT, WITHOUT ROWID;
