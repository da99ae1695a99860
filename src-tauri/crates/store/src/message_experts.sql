-- JSON: a `chat::ExpertReads`.
ALTER TABLE messages ADD COLUMN experts TEXT;
