"""The dashboard of a running daemon: its figures are those of the control socket."""
