-- part: is_chosen
(
    (?6 IS NULL OR p.role IN (SELECT value FROM json_each(?6)))
    AND (?7 IS NULL OR p.tool IN (SELECT value FROM json_each(?7)))
    AND (?8 IS NULL OR p.at >= ?8) AND (?9 IS NULL OR p.at < ?9)
    AND (
        ?10 IS NULL
        OR EXISTS (
            SELECT 1 FROM json_each(?10) AS r
            WHERE p.seq BETWEEN json_extract(r.value, '$[0]') AND json_extract(r.value, '$[1]')
        )
    )
)

-- name: passage_sessions
SELECT s.id, s.key, s.created, coalesce(p.seq, 0), coalesce(p.rows, 0), coalesce(p.apart, 0), coalesce(p.epoch, 0)
FROM session AS s
LEFT JOIN passage_progress AS p ON p.session = s.key
WHERE s.id IN (SELECT value FROM json_each(?));

-- name: put_passage_progress
INSERT INTO passage_progress (session, seq, rows, apart, epoch) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (session) DO UPDATE
SET seq = excluded.seq, rows = excluded.rows, apart = excluded.apart, epoch = excluded.epoch;

-- name: insert_passage
INSERT INTO passage (key, seq, id, role, source, tool, speaker, at, first, last, sources, words, text)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_passage_words
INSERT INTO passage_words (rowid, words) VALUES (?, ?);

-- name: delete_passages
DELETE FROM passage WHERE key BETWEEN ?1 AND ?2 AND (?3 OR seq IS NOT NULL);

-- name: delete_stored
DELETE FROM passage WHERE seq IS NULL AND id = ?1 AND key BETWEEN ?2 AND ?3;

-- name: stored_passages
SELECT key, coalesce(text, words) FROM passage WHERE key BETWEEN ?1 AND ?2 AND seq IS NULL;

-- name: replace_passage_words
UPDATE passage SET words = ?2, text = ?3 WHERE key = ?1;

-- name: merge_passage_words
INSERT INTO passage_words (passage_words) VALUES ('optimize');

-- name: remake_passage_words
INSERT INTO passage_words (passage_words) VALUES ('rebuild');

-- name: match_passages
SELECT rowid, -rank FROM passage_words
WHERE passage_words MATCH ?1 AND rowid BETWEEN ?2 AND ?3
ORDER BY rank LIMIT ?4;

-- name: match_passages_of_many
SELECT rowid, -rank FROM passage_words
WHERE passage_words MATCH ?1 AND rowid BETWEEN ?2 AND ?3 AND rowid >> 32 IN (SELECT value FROM json_each(?5))
ORDER BY rank LIMIT ?4;

-- name: match_chosen_passages
SELECT w.rowid, -w.rank FROM passage_words AS w
CROSS JOIN passage AS p ON p.key = w.rowid
WHERE w.passage_words MATCH ?1 AND w.rowid BETWEEN ?2 AND ?3 AND w.rowid >> 32 IN (SELECT value FROM json_each(?5))
    AND /* is_chosen */
ORDER BY w.rank LIMIT ?4;

-- name: chosen_passages
SELECT key FROM passage
WHERE key BETWEEN ?1 AND ?2
    AND (?3 IS NULL OR role IN (SELECT value FROM json_each(?3)))
    AND (?4 IS NULL OR tool IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR at >= ?5) AND (?6 IS NULL OR at < ?6)
    AND (
        ?7 IS NULL
        OR EXISTS (
            SELECT 1 FROM json_each(?7) AS r
            WHERE seq BETWEEN json_extract(r.value, '$[0]') AND json_extract(r.value, '$[1]')
        )
    )
ORDER BY key;

-- name: passage_facts
SELECT key, at, role, tool, speaker, seq FROM passage WHERE key IN (SELECT value FROM json_each(?));

-- name: passages
SELECT key, seq, id, role, source, tool, speaker, at, first, last, sources, coalesce(text, words)
FROM passage WHERE key IN (SELECT value FROM json_each(?));

-- name: verbatim_passages
SELECT key FROM passage WHERE key IN (SELECT value FROM json_each(?1)) AND instr(coalesce(text, words), ?2) > 0;

-- name: literal_passages
SELECT p.key FROM passage AS p
WHERE p.key BETWEEN ?1 AND ?2 AND p.key >> 32 IN (SELECT value FROM json_each(?4))
    AND instr(coalesce(p.text, p.words), ?3) > 0
    AND /* is_chosen */
ORDER BY p.key DESC LIMIT ?5;

-- name: newest_passage
SELECT at FROM passage WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1;

-- name: passages_without_vector
SELECT key, coalesce(text, words) FROM passage
WHERE key > coalesce(
        (
            SELECT v.key FROM passage_vector AS v
            WHERE v.key BETWEEN ?1 AND ?2 AND v.model = ?3
            -- Not max(v.key), which would read every vector.
            ORDER BY v.key DESC LIMIT 1
        ),
        ?1 - 1
    )
    AND key <= ?2
ORDER BY key LIMIT ?4;

-- name: put_passage_vector
INSERT INTO passage_vector (key, model, data)
SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM passage WHERE key = ?1)
ON CONFLICT (key, model) DO NOTHING;

-- name: passage_vectors
SELECT key, data FROM passage_vector WHERE key BETWEEN ?1 AND ?2 AND model = ?3 ORDER BY key;
