-- What a held replica waits for: the operator; its turn, since one search prunes only so many hosts;
-- or the config, which forbids pruning. The next search decides for those held now.
ALTER TABLE replica ADD COLUMN waits_for TEXT CHECK (waits_for IN ('operator', 'turn', 'config'));
UPDATE replica SET waits_for = 'operator' WHERE status = 'held';
