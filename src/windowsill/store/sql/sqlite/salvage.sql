-- Every statement reads one table by its own key: NOT INDEXED and the unary plus keep damaged indexes out.

-- name: salvage_last_session
SELECT max(key) FROM session NOT INDEXED;

-- name: salvage_sessions
SELECT key, id, created, settings FROM session NOT INDEXED WHERE key BETWEEN ? AND ?;

-- name: salvage_tip
SELECT seq FROM tip WHERE session = ?;

-- name: salvage_last_entry
SELECT seq FROM entry NOT INDEXED WHERE session = ? ORDER BY seq DESC LIMIT 1;

-- name: salvage_entries
SELECT seq, parent, kind, id, at, meta, NULL, hash, body_hash
FROM entry NOT INDEXED WHERE session = ? AND seq BETWEEN ? AND ?;

-- name: salvage_bodies
SELECT key & 4294967295, data FROM body
WHERE key BETWEEN (?1 << 32) | ?2 AND (?1 << 32) | ?3;

-- name: salvage_last_blob
SELECT max(key) FROM blob NOT INDEXED;

-- name: salvage_blobs
SELECT session, id, data FROM blob NOT INDEXED WHERE key BETWEEN ? AND ?;
