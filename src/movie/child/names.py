"""Names that the recorder gives to annotations, and readers of snapshots look for."""

EMPTY_CACHE = "movie: empty_cache"
# Marks of phases. `step`: an optimizer step has ended, what follows is the next iteration. `forward`: what is neither
# of the others.
PREFIX = "movie: "
BACKWARD = PREFIX + "backward"
FORWARD = PREFIX + "forward"
OPTIMIZER = PREFIX + "optimizer"
STEP = PREFIX + "step"
