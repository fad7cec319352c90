-- What an append would otherwise do for each entry.

-- The same rows as before: for a list after NOT IN, SQLite makes and fills a table.
DROP INDEX entry_rare;
CREATE INDEX entry_rare ON entry (session, seq)
WHERE kind <> 'message' AND kind <> 'call' AND kind <> 'usage' AND kind <> 'state';

-- Whether the store was marked as encrypted is asked once, with the end of the journal.
DROP TRIGGER encrypted_entry;
DROP TRIGGER encrypted_body;

-- A session that is deleted finds its places by looking at all of them, which takes no longer than the rest of it:
-- a page less is written with each message.
DROP INDEX place_by_session;
