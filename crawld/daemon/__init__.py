"""The long-lived process: one nursery, host slots, visits, jobs and the control socket."""
