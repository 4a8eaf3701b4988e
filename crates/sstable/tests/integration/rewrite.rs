//! SSTables of Cassandra, read and written again: the index components are equal byte for byte, and so are the
//! statistics, but for what says where they come from.
