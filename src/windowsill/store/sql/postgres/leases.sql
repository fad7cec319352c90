-- name: take_lease
-- Taken when nobody has it, when it is renewed, when its time is over, or when its holder is known to be dead.
INSERT INTO windowsill.lease (session, holder, expires)
VALUES (
    %(session)s, %(holder)s,
    coalesce(%(now)s::float8, extract(EPOCH FROM clock_timestamp())::float8) + %(seconds)s::float8
)
ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
WHERE lease.holder IN (excluded.holder, %(dead)s)
    OR lease.expires <= coalesce(%(now)s::float8, extract(EPOCH FROM clock_timestamp())::float8)
RETURNING session, holder, expires;

-- name: lease
SELECT session, holder, expires
FROM windowsill.lease
WHERE session = %(session)s
    AND expires > coalesce(%(now)s::float8, extract(EPOCH FROM clock_timestamp())::float8);

-- name: drop_lease
DELETE FROM windowsill.lease
WHERE session = %(session)s AND (%(holder)s::text IS NULL OR holder = %(holder)s)
RETURNING session;
