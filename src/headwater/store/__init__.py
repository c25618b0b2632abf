"""What outlives the process: run logs, sessions, owners.

`base.Store` is the agreement; `memory`, `sqlite` and `postgres` hold it, and `headwater.testing.store_suite` is what
anything that claims to must pass. The rules (who may end a run, what a queue does) are written once, in
`rules`, over the `tables` that an engine provides; `engine` is the store that comes of the two.
"""
