-- name: gaps
SELECT s.id, count(e.seq), max(e.seq)
FROM session AS s
JOIN entry AS e ON e.session = s.key
WHERE ?1 IS NULL OR s.id = ?1
GROUP BY s.key
HAVING count(e.seq) <> max(e.seq)
ORDER BY s.id;

-- name: stray_bodies
SELECT count(*) FROM body AS b
WHERE NOT EXISTS (SELECT 1 FROM entry AS e WHERE e.session = b.key >> 32 AND e.seq = b.key & 4294967295);
