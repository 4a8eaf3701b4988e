//! Records of the commit log: mutations of built-in tables, whatever the bytes say.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let schema = schema::system::schema();
    let record = bytes::Bytes::copy_from_slice(data);
    let _ = rows::codec::decode_mutation(&record, &|id| schema.table_by_id(id).cloned());
});
