-- Whether a model writes down the text of pages that are pictures.
ALTER TABLE document_sources ADD COLUMN read_pictures INTEGER NOT NULL DEFAULT 0;
