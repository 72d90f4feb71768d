"""The `dust` job: learns which URLs of an origin show the same page, and hides all but one."""
