-- name: create_session
INSERT INTO session (id, created, settings, checksum) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING;

-- name: session_info
SELECT s.id, s.created, max(s.created, coalesce(e.at, s.created)), coalesce(e.seq, 0), s.settings
FROM session AS s
LEFT JOIN entry AS e
    ON e.session = s.key AND e.seq = (SELECT max(l.seq) FROM entry AS l WHERE l.session = s.key)
WHERE s.id = ?;

-- name: all_sessions
SELECT s.id, s.created, max(s.created, coalesce(e.at, s.created)) AS updated, coalesce(e.seq, 0), s.settings
FROM session AS s
LEFT JOIN entry AS e
    ON e.session = s.key AND e.seq = (SELECT max(l.seq) FROM entry AS l WHERE l.session = s.key)
ORDER BY updated DESC, s.id;

-- name: session_key
SELECT key FROM session WHERE id = ?;

-- name: delete_bodies
DELETE FROM body WHERE key BETWEEN (?1 << 32) AND ((?1 << 32) | 4294967295);

-- name: delete_session
DELETE FROM session WHERE key = ?;

-- name: set_settings
UPDATE session SET settings = ?, checksum = ? WHERE id = ?;
