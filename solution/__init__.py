"""The reference answers: the only hand-written source of lesson code."""
