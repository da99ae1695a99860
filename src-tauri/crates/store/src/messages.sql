CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    tier TEXT,
    model TEXT,
    finish TEXT,
    decode_tokens_per_second REAL,
    time_to_first_token_ms REAL
) STRICT;
CREATE INDEX messages_of_chat ON messages (chat_id);
