-- When each was added, in seconds since 1970. What an older version added has the time of this migration.
ALTER TABLE document_sources ADD COLUMN added INTEGER NOT NULL DEFAULT 0;
ALTER TABLE document_files ADD COLUMN added INTEGER NOT NULL DEFAULT 0;
UPDATE document_sources SET added = unixepoch();
UPDATE document_files SET added = unixepoch();
