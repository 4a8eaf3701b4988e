//! SSTables: readers and writers of Cassandra's files.
