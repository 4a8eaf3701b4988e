//! Small things the standard library lacks: checked cursors, variable-length integers, hashes.
