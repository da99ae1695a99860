-- The texts of the messages with Chinese, Japanese or Korean, which puts no spaces between words. Each such character is a word here.
CREATE VIRTUAL TABLE message_characters USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO message_characters (message_characters, rank) VALUES ('secure-delete', 1);
-- Who writes a message adds its text, as to `message_words`.
CREATE TRIGGER message_characters_rewritten BEFORE UPDATE OF parts ON messages WHEN old.parts <> '[]' BEGIN
    DELETE FROM message_characters WHERE rowid = old.id;
END;
CREATE TRIGGER message_characters_removed BEFORE DELETE ON messages WHEN old.parts <> '[]' BEGIN
    DELETE FROM message_characters WHERE rowid = old.id;
END;
-- The messages that have to be indexed once: only those beyond ASCII can have such characters.
CREATE TABLE messages_to_index (id INTEGER PRIMARY KEY) STRICT;
INSERT INTO messages_to_index SELECT id FROM messages WHERE octet_length(parts) > length(parts);
-- The order of the list of chats, page by page.
CREATE INDEX chats_listed ON chats (pinned DESC, updated_at DESC) WHERE deleted_at IS NULL;
