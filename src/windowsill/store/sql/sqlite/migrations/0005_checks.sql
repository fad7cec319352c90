-- What a session has, written in the transaction of each append. No entry knows whether others came after it, and no
-- index whether it lost a row: this does. Jumps and rare are the rows that entry_jump and entry_rare have for it.
CREATE TABLE tip (
    session INTEGER PRIMARY KEY REFERENCES session (key) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    jumps INTEGER NOT NULL,
    rare INTEGER NOT NULL
);

INSERT INTO tip (session, seq, hash, jumps, rare)
SELECT
    n.session, n.last, (SELECT e.hash FROM entry AS e WHERE e.session = n.session AND e.seq = n.last), n.jumps, n.rare
FROM (
    SELECT
        session, max(seq) AS last, sum(parent <> seq - 1) AS jumps,
        sum(kind NOT IN ('message', 'call', 'usage', 'state')) AS rare
    FROM entry GROUP BY session
) AS n;

-- Of the settings; NULL for those that were stored before and not changed since.
ALTER TABLE session ADD COLUMN checksum BLOB;

-- Views without a checksum are not believed. The next write of a session stores one again where it finds this row.
UPDATE snapshot SET data = x'';
