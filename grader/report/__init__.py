"""What is shown of outcomes, one file per form: the terminal first."""
