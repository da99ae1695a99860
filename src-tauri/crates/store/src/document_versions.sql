-- A file's passages are those of its version. Others are still being added, or removed.
ALTER TABLE document_files ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE document_passages ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
DROP INDEX document_passages_of_file;
CREATE UNIQUE INDEX document_passages_of_file ON document_passages (file, version, place);
-- Such a source is not shown: its files are being removed.
ALTER TABLE document_sources ADD COLUMN is_removed INTEGER NOT NULL DEFAULT 0;
