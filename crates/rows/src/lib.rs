//! Cassandra's data model: partitions, rows, cells, deletions, and their reconciliation.
