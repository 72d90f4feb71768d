"""The SQLite file: connections, the writer, migrations and backup."""
