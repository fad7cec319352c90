-- name: create_session
INSERT INTO windowsill.session (id, created, settings, checksum)
VALUES (%(session)s, %(created)s, %(settings)s, %(checksum)s)
ON CONFLICT (id) DO NOTHING
RETURNING key;

-- name: session_info
SELECT s.id, s.created, greatest(s.created, coalesce(e.at, s.created)), coalesce(e.seq, 0), s.settings
FROM windowsill.session AS s
LEFT JOIN LATERAL (
    SELECT l.seq, l.at FROM windowsill.entry AS l WHERE l.session = s.key ORDER BY l.seq DESC LIMIT 1
) AS e ON true
WHERE s.id = %(session)s;

-- name: all_sessions
SELECT s.id, s.created, greatest(s.created, coalesce(e.at, s.created)) AS updated, coalesce(e.seq, 0), s.settings
FROM windowsill.session AS s
LEFT JOIN LATERAL (
    SELECT l.seq, l.at FROM windowsill.entry AS l WHERE l.session = s.key ORDER BY l.seq DESC LIMIT 1
) AS e ON true
ORDER BY updated DESC, s.id;

-- name: hold_session
-- The index's work on this session waits, or has ended; so do appends, but for those that go with the session.
SELECT key FROM windowsill.session WHERE id = %(session)s FOR UPDATE;

-- name: delete_passages_of_session
DELETE FROM windowsill.passage
WHERE key BETWEEN %(key)s::bigint << 32 AND (%(key)s::bigint << 32) | 4294967295;

-- name: delete_session
DELETE FROM windowsill.session WHERE key = %(key)s;

-- name: set_settings
UPDATE windowsill.session SET settings = %(settings)s, checksum = %(checksum)s
WHERE id = %(session)s
RETURNING key;

-- name: count_deleted
INSERT INTO windowsill.fact (key, value) VALUES (%(key)s, '1')
ON CONFLICT (key) DO UPDATE SET value = ((convert_from(fact.value, 'UTF8')::bigint + 1)::text)::bytea;

-- name: forget_deleted
-- Unless others were deleted meanwhile.
DELETE FROM windowsill.fact WHERE key = %(key)s AND value = %(value)s;

-- name: vacuum
VACUUM (FULL) windowsill.session, windowsill.entry, windowsill.tip, windowsill.snapshot, windowsill.blob,
windowsill.place, windowsill.passage, windowsill.passage_vector, windowsill.passage_progress, windowsill.fact,
windowsill.lease, windowsill.lease_line;
