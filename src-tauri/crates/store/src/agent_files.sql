-- What files were before a run of an agent changed them.
CREATE TABLE agent_files (
    run TEXT NOT NULL,
    -- The answer in which it ran, if in a chat. It goes with the chat.
    chat_id TEXT REFERENCES chats (id) ON DELETE CASCADE,
    message INTEGER,
    folder TEXT NOT NULL,
    -- Relative to the folder.
    path TEXT NOT NULL,
    -- Of the run's last change, in seconds since 1970.
    changed_at INTEGER NOT NULL,
    -- `NULL`: there was none.
    before BLOB,
    -- The SHA-256 of what the run has left: `NULL` if it has written nothing, empty if others have written between its changes.
    after BLOB,
    PRIMARY KEY (run, path)
) STRICT;
CREATE INDEX agent_files_of_chat ON agent_files (chat_id);
