-- JSON: a `chats::TurnFailure`. Of a question, why the last turn left it without an answer.
ALTER TABLE messages ADD COLUMN failure TEXT;
