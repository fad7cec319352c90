-- A store that was marked as encrypted takes nothing readable: a process without a key may have opened it before.
-- C102 is the beginning of every encrypted value; an empty one is kept as it is.
CREATE TRIGGER encrypted_session BEFORE INSERT ON session
WHEN substr(new.settings, 1, 2) <> x'c102' AND EXISTS (SELECT 1 FROM fact WHERE key = 'encryption')
BEGIN
    SELECT RAISE(ABORT, 'encrypted');
END;

CREATE TRIGGER encrypted_settings BEFORE UPDATE OF settings ON session
WHEN substr(new.settings, 1, 2) <> x'c102' AND EXISTS (SELECT 1 FROM fact WHERE key = 'encryption')
BEGIN
    SELECT RAISE(ABORT, 'encrypted');
END;

CREATE TRIGGER encrypted_entry BEFORE INSERT ON entry
WHEN substr(new.meta, 1, 2) NOT IN (x'c102', x'') AND EXISTS (SELECT 1 FROM fact WHERE key = 'encryption')
BEGIN
    SELECT RAISE(ABORT, 'encrypted');
END;

CREATE TRIGGER encrypted_body BEFORE INSERT ON body
WHEN substr(new.data, 1, 2) <> x'c102' AND EXISTS (SELECT 1 FROM fact WHERE key = 'encryption')
BEGIN
    SELECT RAISE(ABORT, 'encrypted');
END;

CREATE TRIGGER encrypted_snapshot BEFORE INSERT ON snapshot
WHEN substr(new.data, 1, 2) NOT IN (x'c102', x'') AND EXISTS (SELECT 1 FROM fact WHERE key = 'encryption')
BEGIN
    SELECT RAISE(ABORT, 'encrypted');
END;

CREATE TRIGGER encrypted_blob BEFORE INSERT ON blob
WHEN substr(new.data, 1, 2) NOT IN (x'c102', x'') AND EXISTS (SELECT 1 FROM fact WHERE key = 'encryption')
BEGIN
    SELECT RAISE(ABORT, 'encrypted');
END;

CREATE TRIGGER encrypted_fact BEFORE INSERT ON fact
WHEN substr(new.value, 1, 2) NOT IN (x'c102', x'') AND new.key NOT IN ('encryption', 'deleted', 'clock')
AND EXISTS (SELECT 1 FROM fact WHERE key = 'encryption')
BEGIN
    SELECT RAISE(ABORT, 'encrypted');
END;
