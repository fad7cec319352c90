-- name: remember
INSERT INTO fact (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: recall
SELECT value FROM fact WHERE key = ?;

-- name: facts
SELECT key, value FROM fact WHERE key >= ?1 AND key < ?1 || CAST(x'ff' AS TEXT) ORDER BY key;

-- name: forget
DELETE FROM fact WHERE key = ?;
