-- What the archive knows is made from the journal and can be made again; only passages without a seq were put in by hand.

-- key is (session << 32) | number, so that a session is one range of keys, and the passages around a hit are the keys
-- around it. Numbers from 2147483648 on are passages that stand in no row: summaries, and what was stored by hand.
CREATE TABLE passage (
    key INTEGER PRIMARY KEY,
    seq INTEGER,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    source TEXT NOT NULL,
    tool TEXT,
    speaker TEXT,
    at REAL NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    sources TEXT,
    -- As the index takes them: pairs of CJK characters, parts of identifiers. The text only where it is another.
    words TEXT NOT NULL,
    text TEXT
);

CREATE INDEX passage_stored ON passage (id, key) WHERE seq IS NULL;

CREATE VIRTUAL TABLE passage_words USING fts5 (
    words, content = 'passage', content_rowid = 'key', tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE passage_vector (
    key INTEGER NOT NULL,
    model TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (key, model)
) WITHOUT ROWID;

-- Up to which entry a session is indexed, the last numbers given, and how often it was begun anew.
CREATE TABLE passage_progress (
    session INTEGER PRIMARY KEY REFERENCES session (key) ON DELETE CASCADE,
    seq INTEGER NOT NULL DEFAULT 0,
    rows INTEGER NOT NULL DEFAULT 0,
    apart INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0
);

CREATE TRIGGER passage_gone AFTER DELETE ON passage BEGIN
    INSERT INTO passage_words (passage_words, rowid, words) VALUES ('delete', old.key, old.words);
    DELETE FROM passage_vector WHERE key = old.key;
END;

CREATE TRIGGER passage_changed AFTER UPDATE OF words ON passage BEGIN
    INSERT INTO passage_words (passage_words, rowid, words) VALUES ('delete', old.key, old.words);
    INSERT INTO passage_words (rowid, words) VALUES (new.key, new.words);
END;

-- A word that is deleted stays in the full-text index's segments, with a note that it is gone, until they are merged.
CREATE TRIGGER passage_session_gone AFTER DELETE ON session
WHEN EXISTS (SELECT 1 FROM passage WHERE key BETWEEN (old.key << 32) AND ((old.key << 32) | 4294967295))
BEGIN
    DELETE FROM passage WHERE key BETWEEN (old.key << 32) AND ((old.key << 32) | 4294967295);
    INSERT INTO passage_words (passage_words) VALUES ('optimize');
END;
