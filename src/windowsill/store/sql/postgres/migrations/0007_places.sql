-- The sessions that hold a place, newer ones first, each with the entry; in one session where it is stated. Replaced where
-- places come to stand elsewhere, so that workers that run already find them there too.
CREATE FUNCTION windowsill.places_1(_key bytea, _session integer, _most integer)
RETURNS TABLE (session integer, seq bigint) LANGUAGE sql STABLE ROWS 8 AS $$
SELECT p.session, p.seq
FROM windowsill.place AS p
WHERE p.key = _key AND p.session BETWEEN coalesce(_session, 0) AND coalesce(_session, 2147483647)
ORDER BY p.session DESC
LIMIT _most;
$$;
