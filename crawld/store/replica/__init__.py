"""Tables about hosts with the same content."""
