"""Faults underneath the file layer, so that nothing inside a store or runner knows of them."""
