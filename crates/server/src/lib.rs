//! Workers, connections, requests: introduces protocol, CQL and the cluster to each other.
