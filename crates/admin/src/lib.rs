//! The admin port: metrics, the API behind nodetool, and nodetool itself.
