-- name: put_lease
INSERT INTO lease (session, holder, expires) VALUES (?, ?, ?)
ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, expires = excluded.expires;

-- name: lease
SELECT session, holder, expires FROM lease WHERE session = ?;

-- name: drop_lease
DELETE FROM lease WHERE session = ?1 AND (?2 IS NULL OR holder = ?2);
