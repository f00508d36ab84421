"""The engineering version of the event log: durable, chained, fast, and useful outside the classroom (E1-E17)."""
