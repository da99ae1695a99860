-- A request belongs to a key and not to its name, which a later key may have.
UPDATE jobs SET owner = coalesce(
    (SELECT lower(hex(keys.hash)) FROM keys WHERE keys.name = jobs.owner AND keys.created_ms <= jobs.created_ms),
    '?' || owner
) WHERE owner <> '';
