-- JSON: a `chat::settings::AnswerSettings`.
ALTER TABLE chats ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
CREATE TABLE presets (
    name TEXT PRIMARY KEY,
    -- As in `chats`.
    settings TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- The files of messages. A `chat::Part` names them by hash.
CREATE TABLE attachments (
    -- In hexadecimal.
    sha256 TEXT PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;
-- Which messages have which, so that the last one's end is the file's.
CREATE TABLE message_files (
    message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL
) STRICT;
CREATE INDEX files_of_message ON message_files (message);
CREATE INDEX messages_with_file ON message_files (sha256);
CREATE TRIGGER message_with_files AFTER INSERT ON messages WHEN new.parts LIKE '%"sha256"%' BEGIN
    INSERT INTO message_files (message, sha256)
    SELECT new.id, json_extract(value, '$.file.sha256') FROM json_each(new.parts)
    WHERE json_extract(value, '$.file.sha256') IS NOT NULL;
END;
CREATE TRIGGER file_removed AFTER DELETE ON message_files BEGIN
    DELETE FROM attachments WHERE sha256 = old.sha256
    AND NOT EXISTS (SELECT 1 FROM message_files WHERE sha256 = old.sha256);
END;
