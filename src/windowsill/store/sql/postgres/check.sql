-- name: gaps
SELECT s.id, count(e.seq), max(e.seq)
FROM windowsill.session AS s
JOIN windowsill.entry AS e ON e.session = s.key
WHERE %(session)s::text IS NULL OR s.id = %(session)s
GROUP BY s.key, s.id
HAVING count(e.seq) <> max(e.seq)
ORDER BY s.id;

-- name: session_checksums
SELECT id, settings, checksum FROM windowsill.session
WHERE %(session)s::text IS NULL OR id = %(session)s
ORDER BY id;

-- name: lost_tips
-- A session that has entries has a tip, and the tip is its last entry.
SELECT s.id, coalesce(t.seq, 0), coalesce(e.seq, 0)
FROM windowsill.session AS s
LEFT JOIN windowsill.tip AS t ON t.session = s.key
LEFT JOIN LATERAL (
    SELECT l.seq, l.hash FROM windowsill.entry AS l WHERE l.session = s.key ORDER BY l.seq DESC LIMIT 1
) AS e ON true
WHERE (%(session)s::text IS NULL OR s.id = %(session)s) AND (t.seq, t.hash) IS DISTINCT FROM (e.seq, e.hash)
ORDER BY s.id;

-- name: invalid_indexes
SELECT c.relname::text
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
WHERE c.relnamespace = to_regnamespace('windowsill') AND NOT i.indisvalid
ORDER BY c.relname;

-- name: size
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = to_regnamespace('windowsill') AND c.relkind = 'r';
