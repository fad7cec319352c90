-- name: put_lease
INSERT INTO lease (session, holder, expires) VALUES (?, ?, ?)
ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, expires = excluded.expires;

-- name: lease
SELECT session, holder, expires FROM lease WHERE session = ?;

-- name: drop_lease
DELETE FROM lease WHERE session = ?1 AND (?2 IS NULL OR holder = ?2);

-- name: lease_line
SELECT session, holder, expires FROM lease_line WHERE session = ? ORDER BY number;

-- name: join_lease_line
INSERT INTO lease_line (session, holder, expires) VALUES (?, ?, ?)
ON CONFLICT (session, holder) DO UPDATE SET expires = excluded.expires;

-- name: leave_lease_line
DELETE FROM lease_line WHERE session = ?1 AND (holder = ?2 OR expires <= ?3);
