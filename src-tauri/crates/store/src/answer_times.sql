-- JSON: a `chat::AnswerTimes`.
ALTER TABLE messages ADD COLUMN times TEXT;
