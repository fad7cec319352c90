-- part: is_rare
-- As the index entry_rare has it, word for word: it is used for nothing else.
e.kind <> 'message' AND e.kind <> 'call' AND e.kind <> 'usage' AND e.kind <> 'state'

-- name: journal_end
SELECT
    s.key, coalesce((SELECT max(e.seq) FROM entry AS e WHERE e.session = s.key), 0),
    EXISTS (SELECT 1 FROM fact WHERE key = 'encryption')
FROM session AS s
WHERE s.id = ?;

-- name: insert_entry
INSERT INTO entry (session, seq, parent, kind, id, at, meta, hash, body_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_body
INSERT INTO body (key, data) VALUES ((?1 << 32) | ?2, ?3);

-- name: move_tip
-- A key may be given to another session when its own is deleted.
UPDATE tip SET seq = ?1, hash = ?2, jumps = jumps + ?3, rare = rare + ?4
WHERE session = ?5 AND seq = ?6 AND EXISTS (SELECT 1 FROM session AS s WHERE s.key = ?5 AND s.id = ?7);

-- name: put_tip
INSERT INTO tip (session, seq, hash, jumps, rare) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (session) DO UPDATE
SET seq = excluded.seq, hash = excluded.hash, jumps = jumps + excluded.jumps, rare = rare + excluded.rare;

-- name: is_rare_index_whole
-- The kind is that of the row that the index leads to.
SELECT t.rare = (
    SELECT count(DISTINCT CASE WHEN e.kind NOT IN ('message', 'call', 'usage', 'state') THEN e.seq END)
    FROM entry AS e INDEXED BY entry_rare
    WHERE e.session = s.key AND /* is_rare */
)
FROM session AS s
JOIN tip AS t ON t.session = s.key
WHERE s.id = ?;

-- name: is_jump_index_whole
-- The parent is compared with that of the row.
SELECT t.jumps = (
    SELECT count(DISTINCT i.seq)
    FROM entry AS i INDEXED BY entry_jump
    JOIN entry AS e ON e.session = i.session AND e.seq = i.seq AND e.parent = i.parent
    WHERE i.session = s.key AND i.parent <> i.seq - 1
)
FROM session AS s
JOIN tip AS t ON t.session = s.key
WHERE s.id = ?;

-- name: put_snapshot
INSERT INTO snapshot (session, seq, data) VALUES (?, ?, ?)
ON CONFLICT (session, seq) DO UPDATE SET data = excluded.data;

-- name: put_blob
INSERT INTO blob (session, id, data) VALUES (?, ?, ?) ON CONFLICT (session, id) DO NOTHING;

-- name: put_place
INSERT INTO place (key, session, seq) VALUES (?, ?, ?) ON CONFLICT (key, session) DO UPDATE SET seq = excluded.seq;

-- name: places
SELECT s.id, p.seq FROM place AS p JOIN session AS s ON s.key = p.session
WHERE p.key = ?1 ORDER BY p.session DESC LIMIT ?2;

-- name: places_in_session
SELECT s.id, p.seq FROM session AS s JOIN place AS p ON p.key = ?1 AND p.session = s.key WHERE s.id = ?2;

-- name: taken_ids
SELECT id FROM entry WHERE session = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY seq;

-- name: read_whole
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, coalesce(b.data, x''), e.hash, e.body_hash
FROM session AS s
JOIN entry AS e ON e.session = s.key
LEFT JOIN body AS b ON b.key = (e.session << 32) | e.seq
WHERE s.id = ?1 AND e.seq BETWEEN ?2 AND ?3
    AND (?4 IS NULL OR e.kind IN (SELECT value FROM json_each(?4)))
ORDER BY e.seq;

-- name: read_meta
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, NULL, e.hash, e.body_hash
FROM session AS s
JOIN entry AS e ON e.session = s.key
WHERE s.id = ?1 AND e.seq BETWEEN ?2 AND ?3
    AND (?4 IS NULL OR e.kind IN (SELECT value FROM json_each(?4)))
ORDER BY e.seq;

-- name: read_rare_whole
-- For kinds of which there are few: INDEXED BY makes sure that no message is looked at.
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, coalesce(b.data, x''), e.hash, e.body_hash
FROM session AS s
JOIN entry AS e INDEXED BY entry_rare ON e.session = s.key
LEFT JOIN body AS b ON b.key = (e.session << 32) | e.seq
WHERE s.id = ?1 AND e.seq BETWEEN ?2 AND ?3
    AND /* is_rare */
    AND (e.kind IN (SELECT value FROM json_each(?4)))
ORDER BY e.seq;

-- name: read_rare_meta
-- For kinds of which there are few: INDEXED BY makes sure that no message is looked at.
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, NULL, e.hash, e.body_hash
FROM session AS s
JOIN entry AS e INDEXED BY entry_rare ON e.session = s.key
WHERE s.id = ?1 AND e.seq BETWEEN ?2 AND ?3
    AND /* is_rare */
    AND (e.kind IN (SELECT value FROM json_each(?4)))
ORDER BY e.seq;

-- name: find_entry
SELECT e.seq, e.parent, e.kind, e.id, e.at, e.meta, coalesce(b.data, x''), e.hash, e.body_hash
FROM session AS s
JOIN entry AS e ON e.session = s.key AND e.id = ?2
LEFT JOIN body AS b ON b.key = (e.session << 32) | e.seq
WHERE s.id = ?1;

-- name: jumps
-- INDEXED BY turns a scan of the whole journal, should the index ever go, into an error that tests see.
SELECT e.seq, e.parent
FROM session AS s
JOIN entry AS e INDEXED BY entry_jump ON e.session = s.key
WHERE s.id = ? AND e.parent <> e.seq - 1
ORDER BY e.seq;

-- name: last_snapshot
-- As bytes, whatever an overwritten page says it is: its checksum tells.
SELECT n.seq, CAST(n.data AS BLOB)
FROM session AS s
JOIN snapshot AS n ON n.session = s.key
WHERE s.id = ? AND n.seq <= ?
ORDER BY n.seq DESC
LIMIT 1;

-- name: blob
-- The length is known without reading the data.
SELECT b.key, CASE WHEN length(b.data) <= ?3 THEN b.data END
FROM session AS s
JOIN blob AS b ON b.session = s.key
WHERE s.id = ?1 AND b.id = ?2;

-- name: blob_ids
-- No text in UTF-8 holds the byte FF: what lies between the prefix and the prefix with FF behind it begins with it.
SELECT b.id
FROM session AS s
JOIN blob AS b ON b.session = s.key
WHERE s.id = ?1 AND b.id >= ?2 AND b.id < ?2 || CAST(x'ff' AS TEXT)
ORDER BY b.id;

-- name: drop_blob
DELETE FROM blob WHERE session = ? AND id = ?;
