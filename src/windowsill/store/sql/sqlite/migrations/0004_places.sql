-- Finds the message at which a conversation stands, in whatever session, by the fingerprint of what was said so far.
CREATE TABLE place (
    key BLOB NOT NULL,
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    PRIMARY KEY (key, session)
) WITHOUT ROWID;

-- A session that is deleted takes its places with it.
CREATE INDEX place_by_session ON place (session);
