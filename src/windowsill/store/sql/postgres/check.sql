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
-- No entry knows whether others came after it, but what was written beside the last ones does.
SELECT s.id, n.known, coalesce(e.last, 0)
FROM windowsill.session AS s
LEFT JOIN LATERAL (SELECT max(l.seq) AS last FROM windowsill.entry AS l WHERE l.session = s.key) AS e ON true
CROSS JOIN LATERAL (
    SELECT greatest(
        (SELECT max(p.seq) FROM windowsill.place AS p WHERE p.session = s.key),
        (SELECT max(t.seq) FROM windowsill.snapshot AS t WHERE t.session = s.key),
        (SELECT g.seq FROM windowsill.passage_progress AS g WHERE g.session = s.key)
    ) AS known
) AS n
WHERE (%(session)s::text IS NULL OR s.id = %(session)s) AND n.known > coalesce(e.last, 0)
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
