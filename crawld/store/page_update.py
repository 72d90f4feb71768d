"""The statements by which a visit updates its page: one for each kind of outcome.

Only that of a new copy names digest, validators and version, so that no other outcome can replace a
good copy. Each begins with the columns that every visit sets.
"""

from __future__ import annotations

from typing import Final

_EVERY: Final = """
UPDATE page SET state = ?, last_visit_at = ?, last_outcome = ?, last_failure = ?, retry_at = ?,
    failure_count = ?, gone_count = ?, gone_since = ?, visit_count = visit_count + 1
"""

# version_id stays if the new copy may not be kept: the last stored one remains readable
CHANGED: Final = f"""{_EVERY}, change_count = change_count + ?, last_change_at =
    coalesce(?, last_change_at), digest = ?, version_id = coalesce(?, version_id), etag = ?,
    last_modified = ?, title = ?, form = ?, cleaned_digest = ?, sketch = ?, change_streak = ?,
    redirect_url = NULL
WHERE page_id = ?"""
"""A new copy; a variant counts as no change."""

# a 304 may omit validators: the known ones then still hold (RFC 9110, section 15.4.5)
SAME: Final = f"""{_EVERY}, etag = coalesce(?, etag),
    last_modified = coalesce(?, last_modified), cleaned_digest = coalesce(?, cleaned_digest),
    change_streak = ?, redirect_url = NULL
WHERE page_id = ?"""

SAME_AS_VARIANT: Final = f"""{_EVERY}, etag = ?, last_modified = ?, form = ?,
    redirect_url = NULL
WHERE page_id = ?"""
"""The bytes of the copy held, in answer to another form of the request: its validators hold now."""

MOVED: Final = f"{_EVERY}, redirect_url = ? WHERE page_id = ?"

WITHOUT_COPY: Final = f"{_EVERY} WHERE page_id = ?"
