-- name: remember
INSERT INTO windowsill.fact (key, value) VALUES (%(key)s, %(value)s)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: recall
SELECT value FROM windowsill.fact WHERE key = %(key)s;

-- name: facts
SELECT key, value FROM windowsill.fact WHERE starts_with(key, %(prefix)s) ORDER BY key;

-- name: forget
DELETE FROM windowsill.fact WHERE key = %(key)s RETURNING key;
