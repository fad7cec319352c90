-- part: is_chosen
(
    (%(roles)s::text[] IS NULL OR p.role = ANY(%(roles)s::text[]))
    AND (%(tools)b::bytea[] IS NULL OR p.tool = ANY(%(tools)b::bytea[]))
    AND (%(after)s::float8 IS NULL OR p.at >= %(after)s::float8)
    AND (%(before)s::float8 IS NULL OR p.at < %(before)s::float8)
    AND (
        %(range_firsts)b::bigint[] IS NULL
        OR EXISTS (
            SELECT 1 FROM unnest(%(range_firsts)b::bigint[], %(range_lasts)b::bigint[]) AS r (first, last)
            WHERE p.seq BETWEEN r.first AND r.last
        )
    )
)

-- name: passage_sessions
SELECT s.id, s.key, s.created, coalesce(p.seq, 0), coalesce(p.rows, 0), coalesce(p.apart, 0), coalesce(p.epoch, 0)
FROM windowsill.session AS s
LEFT JOIN windowsill.passage_progress AS p ON p.session = s.key
WHERE s.id = ANY(%(sessions)s::text[]);

-- name: hold_passage_session
-- One process at a time indexes a session, and none while it is deleted.
SELECT key FROM windowsill.session WHERE id = %(session)s FOR NO KEY UPDATE;

-- name: put_passage_progress
INSERT INTO windowsill.passage_progress (session, seq, rows, apart, epoch)
VALUES (%(key)s, %(seq)s, %(rows)s, %(apart)s, %(epoch)s)
ON CONFLICT (session) DO UPDATE
SET seq = excluded.seq, rows = excluded.rows, apart = excluded.apart, epoch = excluded.epoch;

-- name: insert_passages
INSERT INTO windowsill.passage
    (key, seq, id, role, source, tool, speaker, at, first, last, sources, text, words)
SELECT n.key, n.seq, n.id, n.role, n.source, n.tool, n.speaker, n.at, n.first, n.last, n.sources, n.text,
    to_tsvector('windowsill.words', n.words)
FROM unnest(
    %(keys)b::bigint[], %(seqs)b::bigint[], %(ids)s::text[], %(roles)s::text[], %(sources)s::text[],
    %(tools)b::bytea[], %(speakers)b::bytea[], %(times)b::float8[], %(firsts)b::integer[], %(lasts)b::integer[],
    %(made_from)s::text[], %(texts)b::bytea[], %(words)s::text[]
) AS n (key, seq, id, role, source, tool, speaker, at, first, last, sources, text, words);

-- name: delete_passages
DELETE FROM windowsill.passage
WHERE key BETWEEN %(first)s AND %(last)s AND (%(every)s OR seq IS NOT NULL);

-- name: delete_stored
DELETE FROM windowsill.passage
WHERE seq IS NULL AND id = ANY(%(ids)s::text[]) AND key BETWEEN %(first)s AND %(last)s;

-- name: stored_passages
SELECT key, text FROM windowsill.passage WHERE key BETWEEN %(first)s AND %(last)s AND seq IS NULL;

-- name: replace_passage_words
UPDATE windowsill.passage AS p
SET words = to_tsvector('windowsill.words', n.words)
FROM unnest(%(keys)b::bigint[], %(words)s::text[]) AS n (key, words)
WHERE p.key = n.key;

-- name: remake_passage_words
REINDEX INDEX windowsill.passage_words;

-- name: match_passages
-- As BM25: a rare term counts more than a common one, a second occurrence less than the first, and a long passage less
-- than a short one. `ts_rank` of one term is 1/1 + 1/4 + 1/9 ... over its occurrences.
WITH hit AS MATERIALIZED (
    SELECT t.term, p.key, ts_rank(p.words, t.query) AS rank, length(p.words) AS size
    FROM (
        SELECT n.term, to_tsquery('windowsill.words', n.query) AS query
        FROM unnest(%(terms)s::text[]) WITH ORDINALITY AS n (query, term)
    ) AS t
    JOIN windowsill.passage AS p ON p.words @@ t.query
    WHERE p.key BETWEEN %(first)s AND %(last)s AND p.key >> 32 = ANY(%(keys)b::bigint[])
        AND /* is_chosen */
),

weight AS (
    SELECT term, ln(1 + greatest(%(total)s::float8 - count(*), 0) / (count(*) + 0.5)) + 1e-6 AS rarity
    FROM hit GROUP BY term
)

SELECT
    h.key,
    sum(w.rarity * h.rank / (1 + 1.2 * (0.25 + 0.75 * h.size / (SELECT avg(size) FROM hit))))::float8 AS score
FROM hit AS h
JOIN weight AS w ON w.term = h.term
GROUP BY h.key
ORDER BY score DESC, h.key
LIMIT %(most)s;

-- name: chosen_passages
SELECT p.key
FROM windowsill.passage AS p
WHERE p.key BETWEEN %(first)s AND %(last)s AND p.key >> 32 = ANY(%(keys)b::bigint[])
    AND (%(text)b::bytea IS NULL OR position(%(text)b::bytea IN p.text) > 0)
    AND /* is_chosen */
ORDER BY p.key DESC
LIMIT %(most)s;

-- name: passage_facts
SELECT key, at, role, tool, speaker, seq FROM windowsill.passage WHERE key = ANY(%(keys)b::bigint[]);

-- name: passages
SELECT key, seq, id, role, source, tool, speaker, at, first, last, sources, text
FROM windowsill.passage WHERE key = ANY(%(keys)b::bigint[]);

-- name: verbatim_passages
SELECT key FROM windowsill.passage
WHERE key = ANY(%(keys)b::bigint[]) AND position(%(text)b::bytea IN text) > 0;

-- name: newest_passage
SELECT at FROM windowsill.passage WHERE key BETWEEN %(first)s AND %(last)s ORDER BY key DESC LIMIT 1;

-- name: passages_without_vector
SELECT key, text FROM windowsill.passage
WHERE key > coalesce(
        (
            SELECT v.key FROM windowsill.passage_vector AS v
            WHERE v.key BETWEEN %(first)s AND %(last)s AND v.model = %(model)s
            ORDER BY v.key DESC LIMIT 1
        ),
        %(first)s - 1
    )
    AND key <= %(last)s
ORDER BY key LIMIT %(most)s;

-- name: put_passage_vectors
INSERT INTO windowsill.passage_vector (key, model, data)
SELECT n.key, %(model)s, n.data
FROM unnest(%(keys)b::bigint[], %(vectors)b::bytea[]) AS n (key, data)
JOIN windowsill.passage AS p ON p.key = n.key
ON CONFLICT (key, model) DO NOTHING;

-- name: passage_vectors
SELECT key, data FROM windowsill.passage_vector
WHERE key BETWEEN %(first)s AND %(last)s AND model = %(model)s
ORDER BY key;

-- name: vector_schema
-- The schema of pgvector, where the vectors of this store are of its kind.
SELECT n.nspname::text
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
WHERE a.attrelid = to_regclass('windowsill.passage_vector') AND a.attname = 'embedding' AND NOT a.attisdropped;

-- name: put_passage_embeddings
INSERT INTO windowsill.passage_vector (key, model, data, embedding)
SELECT n.key, %(model)s, n.data, n.embedding::pgvector.halfvec
FROM unnest(%(keys)b::bigint[], %(vectors)b::bytea[], %(embeddings)s::text[]) AS n (key, data, embedding)
JOIN windowsill.passage AS p ON p.key = n.key
ON CONFLICT (key, model) DO NOTHING;

-- name: nearest_passages
SELECT v.key, -(v.embedding OPERATOR(pgvector.<#>) %(vector)s::pgvector.halfvec)::float8 AS score
FROM windowsill.passage_vector AS v
JOIN windowsill.passage AS p ON p.key = v.key
WHERE v.model = %(model)s AND v.key BETWEEN %(first)s AND %(last)s AND v.key >> 32 = ANY(%(keys)b::bigint[])
    AND /* is_chosen */
ORDER BY score DESC, v.key
LIMIT %(most)s;
