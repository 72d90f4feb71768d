"""The JSON of the control socket, as pydantic models."""
