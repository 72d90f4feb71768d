-- The names on the certificate of a host, separated by spaces: two hosts on one certificate may be
-- replicas (core/replica/features.py). Existing hosts have none until their next TLS connection.
ALTER TABLE host ADD COLUMN certificate TEXT;
