-- A `core::chat::context::WhenFull`.
ALTER TABLE chats ADD COLUMN when_full TEXT NOT NULL DEFAULT 'refuse';
-- JSON: a `core::chat::context::ContextUse`.
ALTER TABLE messages ADD COLUMN context TEXT;
-- JSON: a `core::chat::context::LeftOut`.
ALTER TABLE messages ADD COLUMN left_out TEXT;
