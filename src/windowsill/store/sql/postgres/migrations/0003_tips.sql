-- What a session ends with: no entry knows whether others came after it. The trigger is made first, as it keeps others
-- from appending until the tips of the sessions that exist are here.
CREATE TABLE windowsill.tip (
    session integer PRIMARY KEY REFERENCES windowsill.session (key) ON DELETE CASCADE,
    seq bigint NOT NULL,
    hash bytea NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION windowsill.move_tip() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO windowsill.tip (session, seq, hash)
    SELECT DISTINCT ON (n.session) n.session, n.seq, n.hash FROM added AS n ORDER BY n.session, n.seq DESC
    ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, hash = excluded.hash;
    RETURN NULL;
END
$$;

CREATE TRIGGER move_tip AFTER INSERT ON windowsill.entry
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION windowsill.move_tip();

INSERT INTO windowsill.tip (session, seq, hash)
SELECT s.key, e.seq, e.hash
FROM windowsill.session AS s
CROSS JOIN LATERAL (
    SELECT l.seq, l.hash FROM windowsill.entry AS l WHERE l.session = s.key ORDER BY l.seq DESC LIMIT 1
) AS e;
