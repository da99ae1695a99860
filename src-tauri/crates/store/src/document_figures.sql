-- What a list of documents shows, and whether a file is searched by meaning: neither reads the passages.
ALTER TABLE document_files ADD COLUMN passages INTEGER NOT NULL DEFAULT 0;
-- Whose vectors the passages have; how many have one, and how many of these have no numbers, since the embedder refused the text.
ALTER TABLE document_files ADD COLUMN embedder TEXT NOT NULL DEFAULT '';
ALTER TABLE document_files ADD COLUMN embedded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE document_files ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
CREATE INDEX document_files_in_part ON document_files (embedder) WHERE embedded < passages;
CREATE INDEX document_files_with_text ON document_files (embedder) WHERE passages > 0;
-- The sketches of vectors, as `core::documents::vectors` draws them, many to a row: a search by meaning reads these, and the vectors of
-- the nearest.
CREATE TABLE document_sketches (
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL REFERENCES document_files (id) ON DELETE CASCADE,
    -- Ids in 8 bytes each, the lowest byte first.
    passages BLOB NOT NULL,
    -- As many of one length.
    sketches BLOB NOT NULL
) STRICT;
CREATE INDEX document_sketches_of_file ON document_sketches (file);

UPDATE document_files SET
    passages = (SELECT count(*) FROM document_passages WHERE file = document_files.id),
    embedder = coalesce((
        SELECT model FROM document_passages JOIN document_vectors ON passage = document_passages.id
        WHERE document_passages.file = document_files.id ORDER BY place DESC LIMIT 1
    ), '');
DELETE FROM document_vectors WHERE model <> (SELECT embedder FROM document_files WHERE document_files.id = file);
UPDATE document_files SET (embedded, refused) = (
    SELECT count(passage), count(CASE WHEN length(vector) <= 4 THEN 1 END)
    FROM document_passages JOIN document_vectors ON passage = document_passages.id WHERE document_passages.file = document_files.id
);
-- The files whose vectors have to be drawn once.
CREATE TABLE files_to_sketch (id INTEGER PRIMARY KEY) STRICT;
INSERT INTO files_to_sketch SELECT id FROM document_files WHERE embedded > 0;
