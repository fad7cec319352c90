-- As append_3, in half the time: a procedure is called without a plan, and what has a query in it is no condition of an
-- `IF` that is looked at each time. Workers that run already go on with the functions.
CREATE PROCEDURE windowsill.append_4(
    _session text, INOUT _version bigint, _parent bigint, _kind text, _id text, _at float8, _meta bytea, _hash bytea,
    _body_hash bytea, _body bytea, _place bytea
) LANGUAGE plpgsql AS $$
DECLARE
    here integer;
    beginning bytea;
    expected bigint := _version;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(_session, 0));
    SELECT s.key, substring(s.settings FROM 1 FOR 2) INTO here, beginning
    FROM windowsill.session AS s WHERE s.id = _session FOR KEY SHARE;
    IF here IS NULL THEN
        _version := NULL;
        RETURN;
    END IF;
    UPDATE windowsill.tip SET seq = expected + 1, hash = _hash WHERE session = here AND seq = expected;
    IF NOT FOUND THEN
        -- The first entry, or another writer was faster, or the tip is damaged: the entries tell.
        _version := coalesce(
            (SELECT e.seq FROM windowsill.entry AS e WHERE e.session = here ORDER BY e.seq DESC LIMIT 1), 0
        );
        IF _version <> expected THEN
            RETURN;
        END IF;
        INSERT INTO windowsill.tip (session, seq, hash) VALUES (here, expected + 1, _hash)
        ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, hash = excluded.hash;
    END IF;
    IF beginning IN ('\xc102', '')
        AND (
            substring(_meta FROM 1 FOR 2) NOT IN ('\xc102', '') OR substring(_body FROM 1 FOR 2) NOT IN ('\xc102', '')
        ) THEN
        IF EXISTS (SELECT 1 FROM windowsill.fact WHERE key = 'encryption') THEN
            RAISE EXCEPTION 'encrypted' USING ERRCODE = 'restrict_violation';
        END IF;
    END IF;
    INSERT INTO windowsill.entry (session, seq, parent, kind, id, at, meta, hash, body_hash, body, place)
    VALUES (here, expected + 1, _parent, _kind, _id, _at, _meta, _hash, _body_hash, _body, _place);
END
$$;

-- The number of an entry follows the one before, and whoever appends knows the last there may be: the server read the
-- text of this check anew for each row.
ALTER TABLE windowsill.entry DROP CONSTRAINT entry_seq_check;
