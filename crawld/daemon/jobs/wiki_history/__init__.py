"""The wiki history job: read revision histories of MediaWiki sites."""
