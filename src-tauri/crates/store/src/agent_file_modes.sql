-- Permissions: `NULL` if there was no file, or an older version kept it.
ALTER TABLE agent_files ADD COLUMN mode INTEGER;
