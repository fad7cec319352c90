-- name: wait_for_lease
-- One at a time looks who has it, by the clock of the database.
SELECT pg_advisory_xact_lock(hashtextextended('lease ' || %(session)s, 0)), extract(EPOCH FROM clock_timestamp())::float8;

-- name: lease_clock
SELECT extract(EPOCH FROM clock_timestamp())::float8;

-- name: put_lease
INSERT INTO windowsill.lease (session, holder, expires) VALUES (%(session)s, %(holder)s, %(expires)s)
ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, expires = excluded.expires;

-- name: lease
SELECT session, holder, expires FROM windowsill.lease WHERE session = %(session)s;

-- name: drop_lease
DELETE FROM windowsill.lease
WHERE session = %(session)s AND (%(holder)s::text IS NULL OR holder = %(holder)s)
RETURNING session;

-- name: lease_line
SELECT session, holder, expires FROM windowsill.lease_line WHERE session = %(session)s ORDER BY number;

-- name: join_lease_line
INSERT INTO windowsill.lease_line (session, holder, expires) VALUES (%(session)s, %(holder)s, %(expires)s)
ON CONFLICT (session, holder) DO UPDATE SET expires = excluded.expires;

-- name: leave_lease_line
DELETE FROM windowsill.lease_line WHERE session = %(session)s AND (holder = %(holder)s OR expires <= %(now)s);
