-- The schema is called "windowsill" in these files; a store with another one has the name replaced.

CREATE TABLE windowsill.session (
    -- Half of the key of a passage, which has to fit 64 bits together with the sign.
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    created double precision NOT NULL,
    settings bytea NOT NULL,
    checksum bytea NOT NULL
);

-- Rows are inserted and deleted, never updated: an append writes to nothing but the end of the journal. The version of a
-- session is the number of its last entry, and two writers that expect the same version meet in the primary key.
CREATE TABLE windowsill.entry (
    session integer NOT NULL REFERENCES windowsill.session (key) ON DELETE CASCADE,
    seq bigint NOT NULL CHECK (seq BETWEEN 1 AND 4294967295),
    parent bigint NOT NULL,
    at double precision NOT NULL,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    meta bytea NOT NULL,
    hash bytea NOT NULL,
    body_hash bytea NOT NULL,
    body bytea NOT NULL,
    CONSTRAINT entry_by_seq PRIMARY KEY (session, seq),
    CONSTRAINT entry_by_id UNIQUE (session, id)
);

-- Rewinds are rare: this index stays tiny however long the journal grows.
CREATE INDEX entry_jump ON windowsill.entry (session, seq, parent) WHERE parent <> seq - 1;

-- Folds, marks and rewinds are found without walking the messages between them.
CREATE INDEX entry_rare ON windowsill.entry (session, seq) WHERE kind NOT IN ('message', 'call', 'usage', 'state');

CREATE TABLE windowsill.snapshot (
    session integer NOT NULL REFERENCES windowsill.session (key) ON DELETE CASCADE,
    seq bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (session, seq)
);

CREATE TABLE windowsill.blob (
    session integer NOT NULL REFERENCES windowsill.session (key) ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (session, id)
);

-- Finds the message at which a conversation stands, in whatever session, by the fingerprint of what was said so far.
CREATE TABLE windowsill.place (
    key bytea NOT NULL,
    session integer NOT NULL REFERENCES windowsill.session (key) ON DELETE CASCADE,
    seq bigint NOT NULL,
    PRIMARY KEY (key, session)
);

-- A session that is deleted takes its places with it.
CREATE INDEX place_by_session ON windowsill.place (session, seq);

-- An append is one call: one round trip, one transaction, and plans that the server keeps without prepared statements.
-- It returns the version it found, which is not the expected one when it wrote nothing, or NULL without such a session.
-- A later version of it gets another name, so that older workers go on with theirs.
CREATE FUNCTION windowsill.append_1(
    _session text, _version bigint, _seqs bigint[], _parents bigint[], _kinds text[], _ids text[], _times float8[],
    _metas bytea[], _hashes bytea[], _body_hashes bytea[], _bodies bytea[], _snapshot_seqs bigint[], _snapshots bytea[],
    _blob_ids text[], _blobs bytea[], _place_keys bytea[], _place_seqs bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    here integer;
    version bigint;
BEGIN
    -- Whoever wants to be alone waits for those before, and those after wait for whoever wants to be alone.
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(_session, 0));
    SELECT s.key INTO here FROM windowsill.session AS s WHERE s.id = _session FOR KEY SHARE;
    IF here IS NULL THEN
        RETURN NULL;
    END IF;
    version := coalesce(
        (SELECT e.seq FROM windowsill.entry AS e WHERE e.session = here ORDER BY e.seq DESC LIMIT 1), 0
    );
    IF version <> _version THEN
        RETURN version;
    END IF;
    IF cardinality(_seqs) > 0 THEN
        INSERT INTO windowsill.entry (session, seq, parent, kind, id, at, meta, hash, body_hash, body)
        SELECT here, n.*
        FROM unnest(_seqs, _parents, _kinds, _ids, _times, _metas, _hashes, _body_hashes, _bodies) AS n;
    END IF;
    IF cardinality(_snapshot_seqs) > 0 THEN
        INSERT INTO windowsill.snapshot (session, seq, data)
        SELECT here, n.* FROM unnest(_snapshot_seqs, _snapshots) AS n
        ON CONFLICT (session, seq) DO UPDATE SET data = excluded.data;
    END IF;
    IF cardinality(_blob_ids) > 0 THEN
        INSERT INTO windowsill.blob (session, id, data)
        SELECT here, n.* FROM unnest(_blob_ids, _blobs) AS n
        ON CONFLICT (session, id) DO NOTHING;
    END IF;
    IF cardinality(_place_keys) > 0 THEN
        INSERT INTO windowsill.place (session, key, seq)
        SELECT here, n.* FROM unnest(_place_keys, _place_seqs) AS n
        ON CONFLICT (key, session) DO UPDATE SET seq = excluded.seq;
    END IF;
    RETURN version;
END
$$;

CREATE TABLE windowsill.fact (
    key text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

-- By the session's name, not its key: a lock may be taken before the session exists. The time is the database's.
CREATE TABLE windowsill.lease (
    session text COLLATE "C" PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    expires double precision NOT NULL
) WITH (fillfactor = 50);

-- Words are cut by the store, so that every database cuts them alike; this only stems them. No word is left out.
CREATE TEXT SEARCH DICTIONARY windowsill.stem (TEMPLATE = pg_catalog.snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION windowsill.words (PARSER = pg_catalog."default");
ALTER TEXT SEARCH CONFIGURATION windowsill.words
ADD MAPPING FOR asciiword, word, numword, asciihword, hword, numhword, hword_asciipart, hword_part, hword_numpart,
int, uint, float, sfloat, version, email, url, url_path, host, file, protocol, entity, tag WITH windowsill.stem;

-- key is (session << 32) | number, so that a session is one range of keys, and the passages around a hit are the keys
-- around it. Numbers from 2147483648 on are passages that stand in no row: summaries, and what was stored by hand.
-- What a model or a tool wrote is kept as bytes: text of this database cannot hold the character NUL.
CREATE TABLE windowsill.passage (
    key bigint PRIMARY KEY,
    seq bigint,
    at double precision NOT NULL,
    id text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    tool bytea,
    speaker bytea,
    first integer NOT NULL,
    last integer NOT NULL,
    sources text,
    text bytea NOT NULL,
    words tsvector NOT NULL
);

CREATE INDEX passage_words ON windowsill.passage USING gin (words);
CREATE INDEX passage_stored ON windowsill.passage (id, key) WHERE seq IS NULL;

CREATE TABLE windowsill.passage_vector (
    key bigint NOT NULL REFERENCES windowsill.passage (key) ON DELETE CASCADE,
    model text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (key, model)
);

-- Up to which entry a session is indexed, the last numbers given, and how often it was begun anew.
CREATE TABLE windowsill.passage_progress (
    session integer PRIMARY KEY REFERENCES windowsill.session (key) ON DELETE CASCADE,
    seq bigint NOT NULL DEFAULT 0,
    rows bigint NOT NULL DEFAULT 0,
    apart bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Where the server was built with it, lz4 takes a tenth of the time of its own compression.
DO $$
BEGIN
    ALTER TABLE windowsill.entry ALTER COLUMN body SET COMPRESSION lz4;
    ALTER TABLE windowsill.blob ALTER COLUMN data SET COMPRESSION lz4;
    ALTER TABLE windowsill.passage ALTER COLUMN text SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END
$$;
