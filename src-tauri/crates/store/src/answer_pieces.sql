-- What has arrived of an answer that is being written, until the message has it whole.
CREATE TABLE answer_pieces (
    id INTEGER PRIMARY KEY,
    message INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    -- JSON: a `chat::Part`.
    part TEXT NOT NULL
) STRICT;
CREATE INDEX pieces_of_answer ON answer_pieces (message);
