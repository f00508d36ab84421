"""`statelab bundle`: the kit as students get it, without any solution of an exercise. docs/instructor.md, "Hand out"."""
