"""The replicas job, run through rounds of simulated days over a web whose truth is known."""
