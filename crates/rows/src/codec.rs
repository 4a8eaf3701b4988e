//! The one serial form of rows and markers: on disk, in the commit log, between nodes. (See the module's items.)
