//! The ring as this node sees it: tokens, replicas, the coordinator of reads and writes.
