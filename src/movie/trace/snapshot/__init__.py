"""Memory snapshots of torch: what `torch.cuda.memory._dump_snapshot` writes, of any version, in any container.

A snapshot holds, for each device, the segments and blocks at the moment it was taken, and a ring buffer of events.
Reading goes in steps, a module each: `values` (typed access that names the place of a fault), `state` (segments and
blocks), `events` (columns), `rewind` (segments before the first event), `lives` (which free ends which allocation),
`calls` (what the program did that is not recorded as an event), `read` (a trace of all that).
"""
