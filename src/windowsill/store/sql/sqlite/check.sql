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

-- name: session_checksums
SELECT id, settings, checksum FROM session WHERE checksum IS NOT NULL AND (?1 IS NULL OR id = ?1) ORDER BY id;

-- name: lost_tips
-- A session that has entries has a tip, and the tip is its last entry.
SELECT s.id, coalesce(t.seq, 0), coalesce(e.seq, 0)
FROM session AS s
LEFT JOIN tip AS t ON t.session = s.key
LEFT JOIN entry AS e
    ON e.session = s.key AND e.seq = (SELECT max(l.seq) FROM entry AS l WHERE l.session = s.key)
WHERE (?1 IS NULL OR s.id = ?1) AND (t.seq IS NOT e.seq OR t.hash IS NOT e.hash)
ORDER BY s.id;

-- name: check_passage_words
-- Compares the full-text index with the passages it was made of.
INSERT INTO passage_words (passage_words, rank) VALUES ('integrity-check', 1);
