-- name: append
-- One statement is one transaction and one round trip. Whoever was faster after this statement looked at the version has
-- taken the number of its first entry, and the primary key refuses the whole statement.
WITH here AS MATERIALIZED (
    SELECT
        s.key,
        coalesce((SELECT e.seq FROM windowsill.entry AS e WHERE e.session = s.key ORDER BY e.seq DESC LIMIT 1), 0)
        AS version,
        -- Whoever wants to be alone waits for those before, and those after wait for whoever wants to be alone.
        pg_advisory_xact_lock_shared(hashtextextended(%(session)s, 0)) AS turn
    FROM windowsill.session AS s
    WHERE s.id = %(session)s
),

entries AS (
    INSERT INTO windowsill.entry (session, seq, parent, kind, id, at, meta, hash, body_hash, body)
    SELECT here.key, n.*
    FROM here
    CROSS JOIN unnest(
        %(seqs)b::bigint[], %(parents)b::bigint[], %(kinds)s::text[], %(ids)s::text[], %(times)b::float8[],
        %(metas)b::bytea[], %(hashes)b::bytea[], %(body_hashes)b::bytea[], %(bodies)b::bytea[]
    ) AS n
    WHERE here.version = %(version)s
),

snapshots AS (
    INSERT INTO windowsill.snapshot (session, seq, data)
    SELECT here.key, n.* FROM here CROSS JOIN unnest(%(snapshot_seqs)b::bigint[], %(snapshots)b::bytea[]) AS n
    WHERE here.version = %(version)s
    ON CONFLICT (session, seq) DO UPDATE SET data = excluded.data
),

blobs AS (
    INSERT INTO windowsill.blob (session, id, data)
    SELECT here.key, n.* FROM here CROSS JOIN unnest(%(blob_ids)s::text[], %(blobs)b::bytea[]) AS n
    WHERE here.version = %(version)s
    ON CONFLICT (session, id) DO NOTHING
),

places AS (
    INSERT INTO windowsill.place (session, key, seq)
    SELECT here.key, n.* FROM here CROSS JOIN unnest(%(place_keys)b::bytea[], %(place_seqs)b::bigint[]) AS n
    WHERE here.version = %(version)s
    ON CONFLICT (key, session) DO UPDATE SET seq = excluded.seq
)

SELECT version FROM here;

-- name: wait_for_turn
SELECT pg_advisory_xact_lock(hashtextextended(%(session)s, 0));

-- name: written_hashes
SELECT e.hash
FROM windowsill.session AS s
JOIN windowsill.entry AS e ON e.session = s.key
WHERE s.id = %(session)s AND e.seq > %(version)s
ORDER BY e.seq
LIMIT %(most)s;

-- name: taken_ids
SELECT e.id
FROM windowsill.session AS s
JOIN windowsill.entry AS e ON e.session = s.key
WHERE s.id = %(session)s AND e.id = ANY(%(ids)s)
ORDER BY e.seq
LIMIT 1;

-- name: read_whole
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, e.body, e.hash, e.body_hash
FROM windowsill.session AS s
JOIN windowsill.entry AS e ON e.session = s.key
WHERE s.id = %(session)s AND e.seq BETWEEN %(first)s AND %(last)s
    AND (%(kinds)s::text[] IS NULL OR e.kind = ANY(%(kinds)s::text[]))
ORDER BY e.seq;

-- name: read_meta
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, NULL, e.hash, e.body_hash
FROM windowsill.session AS s
JOIN windowsill.entry AS e ON e.session = s.key
WHERE s.id = %(session)s AND e.seq BETWEEN %(first)s AND %(last)s
    AND (%(kinds)s::text[] IS NULL OR e.kind = ANY(%(kinds)s::text[]))
ORDER BY e.seq;

-- name: read_rare_whole
-- The condition of the index entry_rare: no message is looked at.
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, e.body, e.hash, e.body_hash
FROM windowsill.session AS s
JOIN windowsill.entry AS e ON e.session = s.key
WHERE s.id = %(session)s AND e.seq BETWEEN %(first)s AND %(last)s
    AND e.kind NOT IN ('message', 'call', 'usage', 'state') AND e.kind = ANY(%(kinds)s::text[])
ORDER BY e.seq;

-- name: read_rare_meta
-- The condition of the index entry_rare: no message is looked at.
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, NULL, e.hash, e.body_hash
FROM windowsill.session AS s
JOIN windowsill.entry AS e ON e.session = s.key
WHERE s.id = %(session)s AND e.seq BETWEEN %(first)s AND %(last)s
    AND e.kind NOT IN ('message', 'call', 'usage', 'state') AND e.kind = ANY(%(kinds)s::text[])
ORDER BY e.seq;

-- name: find_entry
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, e.body, e.hash, e.body_hash
FROM windowsill.session AS s
JOIN windowsill.entry AS e ON e.session = s.key AND e.id = %(id)s
WHERE s.id = %(session)s;

-- name: jumps
SELECT e.seq, e.parent
FROM windowsill.session AS s
JOIN windowsill.entry AS e ON e.session = s.key
WHERE s.id = %(session)s AND e.parent <> e.seq - 1
ORDER BY e.seq;

-- name: places
SELECT s.id, p.seq
FROM windowsill.place AS p
JOIN windowsill.session AS s ON s.key = p.session
WHERE p.key = %(key)s
ORDER BY p.session DESC
LIMIT %(most)s;

-- name: places_in_session
SELECT s.id, p.seq
FROM windowsill.session AS s
JOIN windowsill.place AS p ON p.key = %(key)s AND p.session = s.key
WHERE s.id = %(session)s;

-- name: last_snapshot
SELECT n.seq, n.data
FROM windowsill.session AS s
JOIN windowsill.snapshot AS n ON n.session = s.key
WHERE s.id = %(session)s AND n.seq <= %(seq)s
ORDER BY n.seq DESC
LIMIT 1;

-- name: blob
SELECT b.data
FROM windowsill.session AS s
JOIN windowsill.blob AS b ON b.session = s.key
WHERE s.id = %(session)s AND b.id = %(id)s;

-- name: put_blobs
WITH here AS MATERIALIZED (SELECT key FROM windowsill.session WHERE id = %(session)s),

blobs AS (
    INSERT INTO windowsill.blob (session, id, data)
    SELECT here.key, n.* FROM here CROSS JOIN unnest(%(ids)s::text[], %(blobs)b::bytea[]) AS n
    ON CONFLICT (session, id) DO NOTHING
)

SELECT key FROM here;

-- name: blob_ids
SELECT b.id
FROM windowsill.session AS s
JOIN windowsill.blob AS b ON b.session = s.key
WHERE s.id = %(session)s AND starts_with(b.id, %(prefix)s)
ORDER BY b.id;

-- name: drop_blobs
WITH here AS MATERIALIZED (SELECT key FROM windowsill.session WHERE id = %(session)s),

gone AS (
    DELETE FROM windowsill.blob WHERE session = (SELECT key FROM here) AND id = ANY(%(ids)s::text[]) RETURNING 1
)

SELECT (SELECT count(*) FROM gone) FROM here;
