"""Notifications: rules look at events, and their messages go to webhooks, mail and Apprise."""
