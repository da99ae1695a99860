-- Messages become a tree of messages with parts. Consecutive answers were answers to one question.
ALTER TABLE messages ADD COLUMN parent INTEGER;
-- JSON: an array of `chat::Part`.
ALTER TABLE messages ADD COLUMN parts TEXT NOT NULL DEFAULT '[]';
ALTER TABLE messages ADD COLUMN why TEXT;
ALTER TABLE messages ADD COLUMN instead_of TEXT;
-- The turn that writes the message or has written it.
ALTER TABLE messages ADD COLUMN turn TEXT;
ALTER TABLE chats ADD COLUMN leaf INTEGER;
UPDATE messages SET
    parts = CASE content WHEN '' THEN '[]' ELSE json_array(json_object('type', 'text', 'text', content)) END,
    parent = (
        SELECT max(earlier.id) FROM messages AS earlier
        WHERE earlier.chat_id = messages.chat_id AND earlier.id < messages.id
        AND (messages.role <> 'assistant' OR earlier.role <> 'assistant')
    );
UPDATE chats SET leaf = (SELECT max(id) FROM messages WHERE chat_id = chats.id);
ALTER TABLE messages DROP COLUMN content;
CREATE INDEX messages_in_turns ON messages (turn) WHERE turn IS NOT NULL;
