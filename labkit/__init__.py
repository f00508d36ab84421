"""What the notebooks and the grader share; docs/architecture.md names the rooms."""
