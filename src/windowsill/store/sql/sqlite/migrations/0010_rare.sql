-- The same rows as before. For a list after NOT IN, SQLite makes and fills a table at each entry that is written.
DROP INDEX entry_rare;
CREATE INDEX entry_rare ON entry (session, seq)
WHERE kind <> 'message' AND kind <> 'call' AND kind <> 'usage' AND kind <> 'state';
