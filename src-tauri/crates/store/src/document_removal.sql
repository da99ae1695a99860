-- Taking words out of the index at once needs some 3 ms a passage, while chats wait. Marked as removed, they leave when the index is merged.
INSERT INTO passage_words (passage_words, rank) VALUES ('secure-delete', 0);
INSERT INTO passage_characters (passage_characters, rank) VALUES ('secure-delete', 0);
-- How many passages were removed since the last merge, and when the first, in seconds since 1970. One row, or none.
CREATE TABLE removed_passages (id INTEGER PRIMARY KEY, count INTEGER NOT NULL, since INTEGER NOT NULL) STRICT;
CREATE TRIGGER passage_counted AFTER DELETE ON document_passages BEGIN
    INSERT INTO removed_passages (id, count, since) VALUES (1, 1, unixepoch())
    ON CONFLICT (id) DO UPDATE SET count = count + 1;
END;
