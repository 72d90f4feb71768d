"""Host slots: when each host may be fetched next."""
