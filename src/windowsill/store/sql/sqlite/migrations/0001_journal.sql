CREATE TABLE session (
    -- Half of body.key, which has to fit 64 bits together with the sign.
    key INTEGER PRIMARY KEY CHECK (key BETWEEN 1 AND 2147483647),
    id TEXT NOT NULL UNIQUE,
    created REAL NOT NULL,
    settings BLOB NOT NULL
);

-- The version of a session and when it was last used are not stored: both are read from its last entry, so that an
-- append writes to nothing but the end of the journal, and no counter can disagree with what it counts.
CREATE TABLE entry (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    seq INTEGER NOT NULL CHECK (seq BETWEEN 1 AND 4294967295),
    parent INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    at REAL NOT NULL,
    meta BLOB NOT NULL,
    hash BLOB NOT NULL,
    body_hash BLOB NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE UNIQUE INDEX entry_by_id ON entry (session, id);

-- Rewinds are rare: this index stays tiny however long the journal grows.
CREATE INDEX entry_jump ON entry (session, seq, parent) WHERE parent <> seq - 1;

-- Folds, marks and rewinds are found without walking the messages between them.
CREATE INDEX entry_rare ON entry (session, seq) WHERE kind NOT IN ('message', 'call', 'usage');

-- key is (session << 32) | seq. An integer key keeps bodies in journal order and up to 4 KB of each in its leaf page;
-- under a key of two columns every body above 1 KB would take a page of its own. An empty body has no row.
CREATE TABLE body (
    key INTEGER PRIMARY KEY,
    data BLOB NOT NULL
);

CREATE TABLE snapshot (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (session, seq)
);

CREATE TABLE blob (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (session, id)
);

CREATE TABLE fact (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

-- By the session's name, not its key: a lock may be taken before the session exists.
CREATE TABLE lease (
    session TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID;
