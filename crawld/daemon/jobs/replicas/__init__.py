"""The replicas job: find hosts with the same content and suspend the copies."""
