-- What agents may do in every chat, in the order in which it was allowed. All of it is written at once.
CREATE TABLE agent_grants (
    position INTEGER PRIMARY KEY,
    -- JSON: an `agent::consent::Grant`.
    content TEXT NOT NULL
) STRICT;
