-- The passages with text of scripts without spaces between words, each letter of which is a word here, as in `message_characters`.
CREATE VIRTUAL TABLE passage_characters USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO passage_characters (passage_characters, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER passage_characters_removed BEFORE DELETE ON document_passages BEGIN
    DELETE FROM passage_characters WHERE rowid = old.id;
END;
-- The passages that have to be indexed once, as `messages_to_index`.
CREATE TABLE passages_to_index (id INTEGER PRIMARY KEY) STRICT;
INSERT INTO passages_to_index SELECT id FROM document_passages
    WHERE octet_length(text) > length(text) OR octet_length(headings) > length(headings);
-- Thai, Lao, Khmer and Burmese were indexed as if they had spaces.
DELETE FROM message_characters;
INSERT OR IGNORE INTO messages_to_index SELECT id FROM messages WHERE octet_length(parts) > length(parts);
