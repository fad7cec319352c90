-- name: remember
INSERT INTO fact (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: recall
SELECT value FROM fact WHERE key = ?;

-- name: recall_all
SELECT key, value FROM fact WHERE substr(key, 1, ?2) = ?1 ORDER BY key;
