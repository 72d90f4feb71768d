-- The names on the certificate of a host, a space between them: two hosts on one certificate may be
-- one (core/replica/features.py). Hosts that exist have none until they are asked next over TLS.
ALTER TABLE host ADD COLUMN certificate TEXT;
