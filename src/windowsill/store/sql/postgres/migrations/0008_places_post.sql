-- The place of a message stands in its own row, as the first 8 bytes of its key: a table and two indexes of their own took
-- more room than a short message. Whoever finds an entry by it compares the whole key. Workers of an earlier version would
-- not find it, nor read the meta of entries, which is packed in another way from here on. What was noted before stays where
-- it is, and so does the second key of a message.
ALTER TABLE windowsill.entry ADD COLUMN place bytea NOT NULL DEFAULT '';
CREATE INDEX entry_by_place ON windowsill.entry (place, session) WHERE place <> '';

CREATE OR REPLACE FUNCTION windowsill.places_1(_key bytea, _session integer, _most integer)
RETURNS TABLE (session integer, seq bigint) LANGUAGE sql STABLE ROWS 8 AS $$
SELECT n.session, max(n.seq)
FROM (
    (
        SELECT p.session, p.seq
        FROM windowsill.place AS p
        WHERE p.key = _key AND p.session BETWEEN coalesce(_session, 0) AND coalesce(_session, 2147483647)
        ORDER BY p.session DESC
        LIMIT _most
    )
    UNION ALL
    (
        SELECT DISTINCT ON (e.session) e.session, e.seq
        FROM windowsill.entry AS e
        WHERE e.place = substring(_key FROM 1 FOR 8) AND e.place <> ''
            AND e.session BETWEEN coalesce(_session, 0) AND coalesce(_session, 2147483647)
        ORDER BY e.session DESC, e.seq DESC
        LIMIT _most
    )
) AS n
GROUP BY n.session
ORDER BY n.session DESC
LIMIT _most;
$$;

-- As append_1, with the place of each entry, or nothing.
CREATE FUNCTION windowsill.append_2(
    _session text, _version bigint, _seqs bigint[], _parents bigint[], _kinds text[], _ids text[], _times float8[],
    _metas bytea[], _hashes bytea[], _body_hashes bytea[], _bodies bytea[], _places bytea[], _snapshot_seqs bigint[],
    _snapshots bytea[], _blob_ids text[], _blobs bytea[], _place_keys bytea[], _place_seqs bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    here integer;
    version bigint;
BEGIN
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
