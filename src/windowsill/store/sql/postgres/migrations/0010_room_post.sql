-- A step of its own, so that appends that began with the old functions have ended as a rule: one that has not leaves the
-- tip of its session behind until the next append.
DROP TRIGGER move_tip ON windowsill.entry;
DROP FUNCTION windowsill.move_tip();

-- Short values never leave their row: the tables that would hold them took 8 KB each. They go with the next rewrite of the
-- table, which is now where it is empty, else by `windowsill store vacuum`.
ALTER TABLE windowsill.tip ALTER COLUMN hash SET STORAGE PLAIN;
ALTER TABLE windowsill.place ALTER COLUMN key SET STORAGE PLAIN;
ALTER TABLE windowsill.lease ALTER COLUMN session SET STORAGE PLAIN, ALTER COLUMN holder SET STORAGE PLAIN;
ALTER TABLE windowsill.lease_line ALTER COLUMN session SET STORAGE PLAIN, ALTER COLUMN holder SET STORAGE PLAIN;

DO $$
DECLARE
    name text;
    used boolean;
BEGIN
    FOREACH name IN ARRAY ARRAY['tip', 'place', 'lease', 'lease_line'] LOOP
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM windowsill.%I)', name) INTO used;
        IF NOT used THEN
            EXECUTE format('CLUSTER windowsill.%I USING %I', name, name || '_pkey');
            EXECUTE format('ALTER TABLE windowsill.%I SET WITHOUT CLUSTER', name);
        END IF;
    END LOOP;
END
$$;
