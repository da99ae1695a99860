-- A `chat::context::WhenFull`.
ALTER TABLE chats ADD COLUMN when_full TEXT NOT NULL DEFAULT 'refuse';
-- JSON: a `chat::context::ContextUse`.
ALTER TABLE messages ADD COLUMN context TEXT;
-- JSON: a `chat::context::LeftOut`.
ALTER TABLE messages ADD COLUMN left_out TEXT;
