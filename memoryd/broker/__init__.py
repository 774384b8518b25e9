"""The memory as tools for a model: what there is, who may use it, and how an answer reads."""
