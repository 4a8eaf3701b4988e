"""The formats that are written, and the settings with which Helenus and Cassandra write them."""

OWN = ["autocompaction_on_startup_enabled=false"]

HELENUS = {
    "da": OWN,
    "oa": [*OWN, "sstable.selected_format=big"],
    "nb": [*OWN, "storage_compatibility_mode=CASSANDRA_4"],
}

CASSANDRA = {
    "da": ["sstable={selected_format: bti}"],
    "oa": [],
    "nb": ["storage_compatibility_mode=CASSANDRA_4"],
}
