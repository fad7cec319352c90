-- name: remember
INSERT INTO fact (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: recall
SELECT value FROM fact WHERE key = ?;
