-- A store that was marked as encrypted takes nothing readable: a process without a key may have opened it before.
-- C102 is the beginning of every encrypted value; an empty one is kept as it is.
CREATE FUNCTION windowsill.refuse_readable() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    beginning bytea;
BEGIN
    IF TG_TABLE_NAME = 'session' THEN
        -- The lock of whoever marks the store, which is done while it has no session: one of the two comes first.
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('encryption', 0));
        beginning := substring(NEW.settings FROM 1 FOR 2);
    ELSIF TG_TABLE_NAME = 'fact' THEN
        beginning := substring(NEW.value FROM 1 FOR 2);
    ELSE
        beginning := substring(NEW.data FROM 1 FOR 2);
    END IF;
    IF beginning NOT IN ('\xc102', '') AND EXISTS (SELECT 1 FROM windowsill.fact WHERE key = 'encryption') THEN
        RAISE EXCEPTION 'encrypted' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER refuse_readable BEFORE INSERT OR UPDATE OF settings ON windowsill.session
FOR EACH ROW EXECUTE FUNCTION windowsill.refuse_readable();
CREATE TRIGGER refuse_readable BEFORE INSERT OR UPDATE ON windowsill.fact
FOR EACH ROW WHEN (NEW.key NOT IN ('encryption', 'deleted')) EXECUTE FUNCTION windowsill.refuse_readable();
CREATE TRIGGER refuse_readable BEFORE INSERT OR UPDATE ON windowsill.snapshot
FOR EACH ROW EXECUTE FUNCTION windowsill.refuse_readable();
CREATE TRIGGER refuse_readable BEFORE INSERT OR UPDATE ON windowsill.blob
FOR EACH ROW EXECUTE FUNCTION windowsill.refuse_readable();

-- Entries are looked at together, by the trigger that they have already.
CREATE OR REPLACE FUNCTION windowsill.move_tip() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM windowsill.fact WHERE key = 'encryption')
        AND EXISTS (
            SELECT 1 FROM added AS n
            WHERE substring(n.meta FROM 1 FOR 2) NOT IN ('\xc102', '')
                OR substring(n.body FROM 1 FOR 2) NOT IN ('\xc102', '')
        ) THEN
        RAISE EXCEPTION 'encrypted' USING ERRCODE = 'restrict_violation';
    END IF;
    INSERT INTO windowsill.tip (session, seq, hash)
    SELECT DISTINCT ON (n.session) n.session, n.seq, n.hash FROM added AS n ORDER BY n.session, n.seq DESC
    ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, hash = excluded.hash;
    RETURN NULL;
END
$$;
