-- JSON: a `core::chat::ExpertReads`.
ALTER TABLE messages ADD COLUMN experts TEXT;
