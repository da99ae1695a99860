-- What requests took, by day, tier, client and chain. Prices are applied when it is read.
CREATE TABLE ledger (
    day TEXT NOT NULL,
    tier TEXT NOT NULL,
    elsewhere INTEGER NOT NULL,
    client TEXT NOT NULL,
    chain TEXT NOT NULL,
    requests INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    unmeasured_ms INTEGER NOT NULL,
    millijoules INTEGER NOT NULL,
    -- Millionths of a US dollar, by the prices of then.
    paid INTEGER NOT NULL,
    PRIMARY KEY (day, tier, elsewhere, client, chain)
) STRICT, WITHOUT ROWID;
