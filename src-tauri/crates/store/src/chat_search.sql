-- Shown before the others.
ALTER TABLE chats ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
-- When the user deleted the chat: hidden from then on, and erased some minutes later.
ALTER TABLE chats ADD COLUMN deleted_at TEXT;
-- What an imported chat was in the program that it comes from.
ALTER TABLE chats ADD COLUMN source TEXT;
CREATE INDEX chats_of_source ON chats (source) WHERE source IS NOT NULL;
CREATE INDEX chats_deleted ON chats (deleted_at) WHERE deleted_at IS NOT NULL;

-- The words of the messages' texts. The text itself is read from the messages.
CREATE VIEW message_texts AS SELECT id, (
    SELECT group_concat(json_extract(parts, fullkey || '.text'), '') FROM json_each(parts)
    WHERE json_extract(parts, fullkey || '.type') = 'text'
) AS text FROM messages;
CREATE VIRTUAL TABLE message_words USING fts5 (
    text, content = 'message_texts', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);
-- The words of a deleted message leave the index at once (https://sqlite.org/fts5.html#the_secure_delete_configuration_option).
INSERT INTO message_words (message_words, rank) VALUES ('secure-delete', 1);
INSERT INTO message_words (rowid, text) SELECT id, text FROM message_texts WHERE text <> '';
-- Who writes a message adds its words: a long text would be in memory several times here.
CREATE TRIGGER message_rewritten BEFORE UPDATE OF parts ON messages WHEN old.parts <> '[]' BEGIN
    INSERT INTO message_words (message_words, rowid, text)
    SELECT 'delete', id, text FROM message_texts WHERE id = old.id AND text <> '';
END;
CREATE TRIGGER message_removed BEFORE DELETE ON messages WHEN old.parts <> '[]' BEGIN
    INSERT INTO message_words (message_words, rowid, text)
    SELECT 'delete', id, text FROM message_texts WHERE id = old.id AND text <> '';
END;

-- The words of the titles.
CREATE VIRTUAL TABLE title_words USING fts5 (title, chat UNINDEXED, tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO title_words (title_words, rank) VALUES ('secure-delete', 1);
INSERT INTO title_words (title, chat) SELECT title, id FROM chats;
CREATE TRIGGER chat_added AFTER INSERT ON chats BEGIN
    INSERT INTO title_words (title, chat) VALUES (new.title, new.id);
END;
CREATE TRIGGER chat_renamed AFTER UPDATE OF title ON chats WHEN old.title <> new.title BEGIN
    UPDATE title_words SET title = new.title WHERE chat = new.id;
END;
CREATE TRIGGER chat_removed AFTER DELETE ON chats BEGIN
    DELETE FROM title_words WHERE chat = old.id;
END;
