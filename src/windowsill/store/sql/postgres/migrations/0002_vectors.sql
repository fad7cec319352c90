-- Where the extension pgvector is to be had, vectors are compared in the database. Where it is not, or comes later, they
-- are compared by the client: there is no such column then.
DO $$
DECLARE
    place text;
BEGIN
    BEGIN
        CREATE EXTENSION IF NOT EXISTS vector;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    SELECT n.nspname INTO place
    FROM pg_catalog.pg_type AS t
    JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
    WHERE t.typname = 'halfvec'
    LIMIT 1;
    IF place IS NOT NULL THEN
        EXECUTE format('ALTER TABLE windowsill.passage_vector ADD COLUMN embedding %I.halfvec', place);
    END IF;
END
$$;
