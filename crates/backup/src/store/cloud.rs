//! A store in the cloud, or in a server that speaks S3: `s3://BUCKET/PREFIX`, `gs://…`, `az://…`.
//!
//! Credentials, region and endpoint come from environment variables, with the names of the clouds'
//! own tools: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`,
//! `AWS_ALLOW_HTTP`; `GOOGLE_SERVICE_ACCOUNT`; `AZURE_STORAGE_ACCOUNT_NAME`,
//! `AZURE_STORAGE_ACCOUNT_KEY`.
//!
//! An object of more than one part is sent in parts, [`PARTS_AT_ONCE`] at one time. It appears
//! when all have come. Parts of an upload that was given up are deleted, if that fails by a rule
//! of the bucket.
//!
//! An object is read in ranges of [`RANGE_SIZE`]. The client's limits of time hold for one request
//! with its body, so one request for a whole object would fail for every object that is large
//! enough, however well its bytes flow. Each range has its own limits; those of uploads fit the
//! size of the parts.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutPayload, RetryConfig,
};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::{Download, Object, Store, Upload, check_key};
use crate::Result;

/// Fewest bytes of a part; S3 takes no smaller one except the last.
const PART_SIZE_MIN: u64 = 8 << 20;
/// Most parts of an object; S3 takes 10,000.
const PARTS_MAX: u64 = 9_000;
/// Most parts of one object that are on their way at one time.
const PARTS_AT_ONCE: usize = 2;
/// Most bytes that one request reads.
const RANGE_SIZE: u64 = 16 << 20;
/// Bytes a second below which a request counts as stuck. A process has up to eight requests on
/// their way at one time, so a link of 512 KiB a second is enough.
const RATE_MIN: u64 = 64 << 10;
/// Number of requests whose longest time is given to the repeats of one request that has failed or
/// timed out.
const ATTEMPTS_TIME: u32 = 3;
/// Number of threads that speak to the store.
const THREADS: usize = 2;
/// Beginnings of the names of environment variables that are given to the store's client.
const VARIABLES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// A store in the cloud.
pub struct Cloud {
    runtime: Arc<Runtime>,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The URL, from which clients for uploads with larger parts than usual are made.
    place: String,
}

fn wrong(key: &str) -> impl Fn(object_store::Error) -> String {
    let key = key.to_owned();
    move |error| match error {
        object_store::Error::Precondition { .. } => format!("{key} was changed while it was read"),
        error => format!("{key}: {error}"),
    }
}

/// The time that a request of so many bytes may take.
fn time_of(size: u64) -> Duration {
    Duration::from_secs(size.div_ceil(RATE_MIN))
}

/// The client of the store at a URL, and the path in the store. Its requests are of at most
/// `request_size` bytes.
fn client(place: &str, request_size: u64) -> Result<(Arc<dyn ObjectStore>, Path)> {
    // where the program has chosen a library already, that one is used
    drop(rustls::crypto::ring::default_provider().install_default());
    let url = url::Url::parse(place).map_err(|error| format!("{place}: {error}"))?;
    let (scheme, prefix) = ObjectStoreScheme::parse(&url).map_err(|error| format!("{place}: {error}"))?;
    let time = time_of(request_size);
    let retry = RetryConfig { retry_timeout: time * ATTEMPTS_TIME, ..RetryConfig::default() };
    let timeout = ("timeout".to_owned(), format!("{} s", time.as_secs()));
    // variables stand behind, so that AWS_TIMEOUT and its like change the limit
    let options: Vec<_> = std::iter::once(timeout).chain(variables(std::env::vars_os())).collect();
    // the builders have these methods in common, and no trait
    macro_rules! build {
        ($builder:ty) => {{
            let start = <$builder>::new().with_url(place).with_retry(retry);
            let builder = options.into_iter().fold(start, |builder, (name, value)| match name.parse() {
                Ok(known) => builder.with_config(known, value),
                Err(_) => builder,
            });
            Arc::new(builder.build().map_err(wrong(place))?)
        }};
    }
    let store: Arc<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::AmazonS3 => build!(AmazonS3Builder),
        ObjectStoreScheme::GoogleCloudStorage => build!(GoogleCloudStorageBuilder),
        ObjectStoreScheme::MicrosoftAzure => build!(MicrosoftAzureBuilder),
        _ => return Err(format!("{place}: this is no store in the cloud that is known")),
    };
    Ok((store, prefix))
}

/// The variables that are given to the store's client, with names in lower case. Those of others
/// may be of any bytes.
fn variables(all: impl Iterator<Item = (OsString, OsString)>) -> impl Iterator<Item = (String, String)> {
    let texts = all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let is_meant = |name: &str| VARIABLES.iter().any(|beginning| name.starts_with(beginning));
    texts.filter(move |(name, _)| is_meant(name)).map(|(name, value)| (name.to_ascii_lowercase(), value))
}

impl Cloud {
    /// The store at a URL. Nothing is asked of it yet.
    pub fn new(place: &str) -> Result<Self> {
        let (store, prefix) = client(place, RANGE_SIZE.max(PART_SIZE_MIN))?;
        Self::with_client(store, prefix, place)
    }

    fn with_client(store: Arc<dyn ObjectStore>, prefix: Path, place: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let runtime = Arc::new(runtime.map_err(|error| error.to_string())?);
        Ok(Self { runtime, store, prefix, place: place.to_owned() })
    }

    /// The client for uploads with parts of this size.
    fn client_for(&self, part_size: u64) -> Result<Arc<dyn ObjectStore>> {
        match part_size <= RANGE_SIZE.max(PART_SIZE_MIN) {
            true => Ok(Arc::clone(&self.store)),
            false => Ok(client(&self.place, part_size)?.0),
        }
    }

    fn path(&self, key: &str) -> Result<Path> {
        check_key(key)?;
        let whole = if self.prefix.as_ref().is_empty() { key.to_owned() } else { format!("{}/{key}", self.prefix) };
        Path::parse(&whole).map_err(|error| error.to_string())
    }
}

impl Store for Cloud {
    fn list(&self, prefix: &str) -> Result<Vec<Object>> {
        let path = self.path(prefix)?;
        let before = self.path(prefix)?.as_ref().len() - prefix.len();
        let mut found = Vec::new();
        self.runtime.block_on(async {
            let mut listed = self.store.list(Some(&path));
            while let Some(object) = listed.next().await {
                let object = object.map_err(wrong(prefix))?;
                let key = object.location.as_ref().get(before..).unwrap_or_default().to_owned();
                if check_key(&key).is_ok() {
                    found.push(Object { key, size: object.size });
                }
            }
            Ok::<_, String>(())
        })?;
        found.sort();
        Ok(found)
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        let path = self.path(key)?;
        match self.runtime.block_on(self.store.head(&path)) {
            Ok(object) => Ok(Some(object.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(wrong(key)(error)),
        }
    }

    fn begin(&self, key: &str, size: u64) -> Result<Box<dyn Upload>> {
        let path = self.path(key)?;
        let part_size = PART_SIZE_MIN.max(size.div_ceil(PARTS_MAX));
        let store = self.client_for(part_size)?;
        let upload = match size > part_size {
            true => Some(self.runtime.block_on(store.put_multipart(&path)).map_err(wrong(key))?),
            false => None,
        };
        Ok(Box::new(CloudUpload {
            runtime: Arc::clone(&self.runtime),
            store,
            key: key.to_owned(),
            path,
            part_size: usize::try_from(part_size).map_err(|error| error.to_string())?,
            part: Vec::new(),
            upload,
            running: VecDeque::new(),
        }))
    }

    fn open(&self, key: &str) -> Result<Box<dyn Download>> {
        let path = self.path(key)?;
        let object = self.runtime.block_on(self.store.head(&path)).map_err(wrong(key))?;
        Ok(Box::new(CloudDownload {
            runtime: Arc::clone(&self.runtime),
            store: Arc::clone(&self.store),
            path,
            key: key.to_owned(),
            size: object.size,
            e_tag: object.e_tag,
            offset: 0,
            stream: futures_util::stream::empty().boxed(),
            range_end: 0,
        }))
    }
}

struct CloudUpload {
    runtime: Arc<Runtime>,
    store: Arc<dyn ObjectStore>,
    key: String,
    path: Path,
    part_size: usize,
    /// Bytes of the next part so far.
    part: Vec<u8>,
    /// The upload in parts; None: the object is a single part.
    upload: Option<Box<dyn MultipartUpload>>,
    /// Parts on their way, oldest first.
    running: VecDeque<JoinHandle<object_store::Result<()>>>,
}

impl CloudUpload {
    /// Waits until at most `left` parts are on their way.
    fn wait(&mut self, left: usize) -> Result<()> {
        while self.running.len() > left {
            let Some(oldest) = self.running.pop_front() else { return Ok(()) };
            let sent = self.runtime.block_on(oldest).map_err(|error| error.to_string())?;
            sent.map_err(wrong(&self.key))?;
        }
        Ok(())
    }

    fn send_part(&mut self) -> Result<()> {
        self.wait(PARTS_AT_ONCE - 1)?;
        let Some(upload) = &mut self.upload else { return Ok(()) };
        let part = PutPayload::from(std::mem::take(&mut self.part));
        let sending = upload.put_part(part);
        self.running.push_back(self.runtime.spawn(sending));
        Ok(())
    }
}

impl Upload for CloudUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            let room = match self.upload {
                Some(_) => (self.part_size - self.part.len()).min(left.len()),
                None => left.len(),
            };
            self.part.extend_from_slice(&left[..room]);
            left = &left[room..];
            if self.upload.is_some() && self.part.len() == self.part_size {
                self.send_part()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.upload.is_none() {
            let payload = PutPayload::from(std::mem::take(&mut self.part));
            let put = self.runtime.block_on(self.store.put(&self.path, payload));
            return put.map(drop).map_err(wrong(&self.key));
        }
        if !self.part.is_empty() {
            self.send_part()?;
        }
        self.wait(0)?;
        // taken out, so that dropping this gives nothing up
        let Some(mut upload) = self.upload.take() else { return Ok(()) };
        self.runtime.block_on(upload.complete()).map(drop).map_err(wrong(&self.key))
    }
}

impl Drop for CloudUpload {
    fn drop(&mut self) {
        for part in self.running.drain(..) {
            part.abort();
        }
        if let Some(mut upload) = self.upload.take() {
            // where this fails too, the parts stay until a rule of the bucket deletes them
            drop(self.runtime.block_on(upload.abort()));
        }
    }
}

struct CloudDownload {
    runtime: Arc<Runtime>,
    store: Arc<dyn ObjectStore>,
    path: Path,
    key: String,
    /// Bytes of the object when it was opened.
    size: u64,
    /// The state of the object when it was opened; None: the store does not name states.
    e_tag: Option<String>,
    /// Bytes that were read.
    offset: u64,
    /// The rest of the range that is being read; empty before the first one.
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    /// The end of that range in the object.
    range_end: u64,
}

impl CloudDownload {
    /// Asks for the next range. All ranges are of the object as it was when it was opened.
    fn begin_range(&mut self) -> Result<()> {
        self.range_end = self.size.min(self.offset + RANGE_SIZE);
        let range = Some(GetRange::Bounded(self.offset..self.range_end));
        let options = GetOptions { range, if_match: self.e_tag.clone(), ..GetOptions::default() };
        let got = self.runtime.block_on(self.store.get_opts(&self.path, options)).map_err(wrong(&self.key))?;
        if got.meta.size != self.size {
            return Err(format!("{} was changed while it was read", self.key));
        }
        self.stream = got.into_stream();
        Ok(())
    }
}

impl Download for CloudDownload {
    fn read(&mut self) -> Result<Vec<u8>> {
        while self.offset < self.size {
            if self.offset == self.range_end {
                self.begin_range()?;
            }
            match self.runtime.block_on(self.stream.next()) {
                None => return Err(format!("{} ended at {} of {} bytes", self.key, self.offset, self.size)),
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => {
                    self.offset += bytes.len() as u64;
                    if self.offset > self.range_end {
                        return Err(format!("{}: the store sent more bytes than it was asked for", self.key));
                    }
                    return Ok(bytes.to_vec());
                }
                Some(Err(error)) => return Err(wrong(&self.key)(error)),
            }
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use object_store::memory::InMemory;

    use super::*;
    use crate::store::upload_bytes;

    fn cloud() -> Cloud {
        Cloud::with_client(Arc::new(InMemory::new()), Path::default(), "memory://").expect("a runtime")
    }

    #[test]
    fn variables_of_others_may_be_of_any_bytes() {
        let latin = || OsString::from_vec(b"Caf\xe9".to_vec());
        let all = [("AWS_REGION".into(), "here".into()), (latin(), "x".into()), ("PLACE".into(), latin())];
        let taken: Vec<_> = variables(all.into_iter()).collect();
        assert_eq!(taken, [("aws_region".to_owned(), "here".to_owned())]);
    }

    #[test]
    fn objects_are_read_in_ranges() {
        let cloud = cloud();
        let range = usize::try_from(RANGE_SIZE).expect("it fits");
        for size in [0, 1, range, range + 1, 2 * range] {
            let content: Vec<u8> = (0..size).map(|place| (place % 251) as u8).collect();
            upload_bytes(&cloud, "nodes/a", &content).expect("memory takes all");
            let mut download = cloud.open("nodes/a").expect("it is there");
            let (mut read, mut pieces) = (Vec::new(), 0);
            loop {
                let piece = download.read().expect("memory gives all");
                if piece.is_empty() {
                    break;
                }
                pieces += 1;
                read.extend_from_slice(&piece);
            }
            assert!(read == content, "{size}");
            // memory answers each request with one piece
            assert_eq!(pieces, size.div_ceil(range), "{size}");
        }
    }

    #[test]
    fn an_object_that_changes_between_two_ranges_is_refused() {
        let cloud = cloud();
        let size = usize::try_from(RANGE_SIZE).expect("it fits") + 1;
        upload_bytes(&cloud, "nodes/a", &vec![1; size]).expect("memory takes all");
        let mut download = cloud.open("nodes/a").expect("it is there");
        assert!(!download.read().expect("the first range").is_empty());
        upload_bytes(&cloud, "nodes/a", &vec![2; size]).expect("memory takes all");
        assert!(download.read().expect_err("another object").contains("was changed while it was read"));
    }

    #[test]
    fn the_client_takes_the_limit_of_time_and_the_variables_of_the_clouds() {
        assert_eq!(time_of(RANGE_SIZE), Duration::from_secs(256));
        for place in ["s3://bucket/prefix", "az://container/prefix"] {
            match client(place, RANGE_SIZE) {
                Ok((_, prefix)) => assert_eq!(prefix.as_ref(), "prefix"),
                // without a variable that names the account
                Err(why) => assert!(place.starts_with("az") && why.contains("ccount"), "{why}"),
            }
        }
        assert!(client("http://host/prefix", RANGE_SIZE).is_err());
    }
}
