-- JSON: a `core::chat::AnswerTimes`.
ALTER TABLE messages ADD COLUMN times TEXT;
