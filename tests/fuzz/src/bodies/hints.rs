//! Hint files of any content: as an earlier life of the node, or another program, may have left
//! them.

use std::path::Path;

use env::sim::{DATA, Sim};
use hints::{Descriptor, Hint, Reader};

/// The name under which the file lies: the head says whose it is.
const NAME: &str = "4799343a-fe41-4c70-bf8e-7815389bcb3c-1795376665385-3.hints";

/// A file is mended and read to its end. What is given is a part of what the file holds, and what
/// was mended is read without an error.
pub fn file(data: &[u8]) {
    if let Ok((descriptor, size)) = Descriptor::decode(data) {
        assert!(size <= data.len());
        let mut again = Vec::new();
        descriptor.encode(&mut again);
        assert_eq!(Descriptor::decode(&again).ok().map(|(again, _)| again), Some(descriptor));
    }
    let sim = Sim::new(1);
    let env = sim.env();
    let (directory, disk) = (Path::new(DATA), env.disk.as_ref());
    let written = disk.create(&directory.join(NAME)).and_then(|mut file| file.write_all(data));
    written.expect("the simulated disk has room");
    let (files, _) = hints::found_files::find_files(disk, directory).expect("the disk is sound");
    // a file whose head tells another name is left alone
    let Some(file) = files.first() else { return };
    assert_eq!(file.descriptor.file_name(), NAME);
    let mut reader = Reader::open(disk, &file.path(directory)).expect("a file that was found opens");
    let (mut hints, mut pages) = (0, Vec::new());
    while let Ok(page) = reader.page() {
        page.hints.iter().for_each(|hint| drop(Hint::decode(hint)));
        hints += page.hints.len();
        pages.push((page.start, page.hints.len()));
        if page.is_last {
            break;
        }
    }
    assert!(hints > 0, "a file without a hint is removed");
    for (start, count) in pages {
        reader.seek(start).expect("a page began there");
        assert_eq!(reader.page().map_or(0, |page| page.hints.len()), count);
    }
}
