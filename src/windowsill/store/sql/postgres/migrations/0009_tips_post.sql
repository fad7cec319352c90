-- The functions that append move the tip themselves: a trigger with a table of the added rows took as long as the insert.
-- As before, two writers that expect the same version meet in the primary key of the entries, and mostly in the tip before
-- that. The row of the session is locked before its tip, in the order of whoever deletes the session, so that neither
-- waits for the other in a circle. Workers that run already call the same functions. In an encrypted session, which its
-- settings tell, readable values are refused.
CREATE OR REPLACE FUNCTION windowsill.append_2(
    _session text, _version bigint, _seqs bigint[], _parents bigint[], _kinds text[], _ids text[], _times float8[],
    _metas bytea[], _hashes bytea[], _body_hashes bytea[], _bodies bytea[], _places bytea[], _snapshot_seqs bigint[],
    _snapshots bytea[], _blob_ids text[], _blobs bytea[], _place_keys bytea[], _place_seqs bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    here integer;
    beginning bytea;
    version bigint;
    added bigint := cardinality(_seqs);
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(_session, 0));
    SELECT s.key, substring(s.settings FROM 1 FOR 2) INTO here, beginning
    FROM windowsill.session AS s WHERE s.id = _session FOR KEY SHARE;
    IF here IS NULL THEN
        RETURN NULL;
    END IF;
    version := coalesce(
        (SELECT e.seq FROM windowsill.entry AS e WHERE e.session = here ORDER BY e.seq DESC LIMIT 1), 0
    );
    IF version <> _version THEN
        RETURN version;
    END IF;
    IF added > 0 THEN
        IF beginning IN ('\xc102', '') AND EXISTS (SELECT 1 FROM windowsill.fact WHERE key = 'encryption')
            AND EXISTS (
                SELECT 1 FROM unnest(_metas || _bodies) AS n (data)
                WHERE substring(n.data FROM 1 FOR 2) NOT IN ('\xc102', '')
            ) THEN
            RAISE EXCEPTION 'encrypted' USING ERRCODE = 'restrict_violation';
        END IF;
        INSERT INTO windowsill.tip (session, seq, hash) VALUES (here, _seqs[added], _hashes[added])
        ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, hash = excluded.hash;
        INSERT INTO windowsill.entry (session, seq, parent, kind, id, at, meta, hash, body_hash, body, place)
        SELECT here, n.*
        FROM unnest(_seqs, _parents, _kinds, _ids, _times, _metas, _hashes, _body_hashes, _bodies, _places) AS n;
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

CREATE OR REPLACE FUNCTION windowsill.append_1(
    _session text, _version bigint, _seqs bigint[], _parents bigint[], _kinds text[], _ids text[], _times float8[],
    _metas bytea[], _hashes bytea[], _body_hashes bytea[], _bodies bytea[], _snapshot_seqs bigint[], _snapshots bytea[],
    _blob_ids text[], _blobs bytea[], _place_keys bytea[], _place_seqs bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN windowsill.append_2(
        _session, _version, _seqs, _parents, _kinds, _ids, _times, _metas, _hashes, _body_hashes, _bodies,
        array_fill(''::bytea, ARRAY[cardinality(_seqs)]), _snapshot_seqs, _snapshots, _blob_ids, _blobs, _place_keys,
        _place_seqs
    );
END
$$;

-- One entry and nothing else, as a message that comes alone: neither side takes arrays apart.
CREATE FUNCTION windowsill.append_3(
    _session text, _version bigint, _parent bigint, _kind text, _id text, _at float8, _meta bytea, _hash bytea,
    _body_hash bytea, _body bytea, _place bytea
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    here integer;
    beginning bytea;
    version bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(_session, 0));
    SELECT s.key, substring(s.settings FROM 1 FOR 2) INTO here, beginning
    FROM windowsill.session AS s WHERE s.id = _session FOR KEY SHARE;
    IF here IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE windowsill.tip SET seq = _version + 1, hash = _hash WHERE session = here AND seq = _version;
    IF NOT FOUND THEN
        -- The first entry, or another writer was faster, or the tip is damaged: the entries tell.
        version := coalesce(
            (SELECT e.seq FROM windowsill.entry AS e WHERE e.session = here ORDER BY e.seq DESC LIMIT 1), 0
        );
        IF version <> _version THEN
            RETURN version;
        END IF;
        INSERT INTO windowsill.tip (session, seq, hash) VALUES (here, _version + 1, _hash)
        ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, hash = excluded.hash;
    END IF;
    IF beginning IN ('\xc102', '')
        AND (
            substring(_meta FROM 1 FOR 2) NOT IN ('\xc102', '') OR substring(_body FROM 1 FOR 2) NOT IN ('\xc102', '')
        )
        AND EXISTS (SELECT 1 FROM windowsill.fact WHERE key = 'encryption') THEN
        RAISE EXCEPTION 'encrypted' USING ERRCODE = 'restrict_violation';
    END IF;
    INSERT INTO windowsill.entry (session, seq, parent, kind, id, at, meta, hash, body_hash, body, place)
    VALUES (here, _version + 1, _parent, _kind, _id, _at, _meta, _hash, _body_hash, _body, _place);
    RETURN _version;
END
$$;
