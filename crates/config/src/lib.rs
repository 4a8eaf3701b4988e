//! cassandra.yaml keys and their validation.
