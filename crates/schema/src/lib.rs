//! Keyspaces, tables, columns, user types: the immutable snapshot every request reads.
