-- A file or folder that the user added.
CREATE TABLE document_sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    collection TEXT NOT NULL,
    is_folder INTEGER NOT NULL
) STRICT;
CREATE TABLE document_files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES document_sources (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    -- As it was last seen; the time in nanoseconds since 1970.
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    -- Of the bytes that its passages are from, in hexadecimal; empty until it has been read.
    sha256 TEXT NOT NULL DEFAULT '',
    -- waiting, indexed or failed. A file that changed waits, and its passages stay until the new ones take their place.
    state TEXT NOT NULL DEFAULT 'waiting',
    -- A `core::documents::DocumentKind`.
    kind TEXT,
    title TEXT,
    pages INTEGER,
    notice TEXT,
    UNIQUE (source, path)
) STRICT;
CREATE INDEX document_files_in_state ON document_files (state);
CREATE TABLE document_passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file INTEGER NOT NULL REFERENCES document_files (id) ON DELETE CASCADE,
    -- Its place among the file's, from 0.
    place INTEGER NOT NULL,
    -- JSON: the headings above it.
    headings TEXT NOT NULL,
    page INTEGER,
    line INTEGER,
    -- Where what the passage before it does not have begins, in bytes.
    fresh INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX document_passages_of_file ON document_passages (file, place);
-- A table of its own, so that a search reads nothing else.
CREATE TABLE document_vectors (
    passage INTEGER PRIMARY KEY REFERENCES document_passages (id) ON DELETE CASCADE,
    file INTEGER NOT NULL,
    -- The embedder. Vectors of different ones cannot be compared.
    model TEXT NOT NULL,
    -- As `core::documents::vectors` packs it.
    vector BLOB NOT NULL
) STRICT;

CREATE VIRTUAL TABLE passage_words USING fts5 (
    headings, text, content = 'document_passages', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
-- As in the search of chats, removed words leave the index at once.
INSERT INTO passage_words (passage_words, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER passage_added AFTER INSERT ON document_passages BEGIN
    INSERT INTO passage_words (rowid, headings, text) VALUES (new.id, new.headings, new.text);
END;
CREATE TRIGGER passage_removed AFTER DELETE ON document_passages BEGIN
    INSERT INTO passage_words (passage_words, rowid, headings, text) VALUES ('delete', old.id, old.headings, old.text);
END;
