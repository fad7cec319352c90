-- Changes of the state come with every step of an agent: folds, marks and rewinds are found without walking them.
DROP INDEX entry_rare;
CREATE INDEX entry_rare ON entry (session, seq) WHERE kind NOT IN ('message', 'call', 'usage', 'state');
