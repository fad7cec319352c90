-- name: append
SELECT windowsill.append_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17);

-- name: append_with_places
SELECT windowsill.append_2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18);

-- name: append_one
CALL windowsill.append_4($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

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
-- Of the first of the keys that is known, in all sessions or in one.
WITH here AS MATERIALIZED (
    SELECT CASE WHEN %(session)s::text IS NOT NULL THEN coalesce(max(key), 0) END AS key
    FROM windowsill.session WHERE id = %(session)s
),

known AS (
    SELECT n.key
    FROM unnest(%(keys)b::bytea[]) WITH ORDINALITY AS n (key, number)
    WHERE EXISTS (SELECT 1 FROM windowsill.places_1(n.key, (SELECT key FROM here), 1))
    ORDER BY n.number
    LIMIT 1
)

SELECT known.key, s.id, p.seq
FROM known
CROSS JOIN LATERAL windowsill.places_1(known.key, (SELECT key FROM here), %(most)s) AS p
JOIN windowsill.session AS s ON s.key = p.session
ORDER BY p.session DESC;

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
WITH here AS MATERIALIZED (SELECT key FROM windowsill.session WHERE id = %(session)s FOR KEY SHARE),

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
