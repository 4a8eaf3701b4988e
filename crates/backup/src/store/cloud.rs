//! A store in the cloud, or in a server that speaks S3: `s3://BUCKET/PREFIX`, `gs://…`, `az://…`.
//!
//! Credentials, region and endpoint are those of the environment, by the names of the clouds' own
//! tools: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`,
//! `AWS_ALLOW_HTTP`; `GOOGLE_SERVICE_ACCOUNT`; `AZURE_STORAGE_ACCOUNT_NAME`,
//! `AZURE_STORAGE_ACCOUNT_KEY`.
//!
//! An object of more than one part is sent in parts, [`PARTS_AT_ONCE`] at one time. It appears when
//! all have come; parts of an upload that was given up are deleted, or by a rule of the bucket.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::{Download, Object, Store, Upload, check_key};
use crate::Result;

/// Bytes of a part at least; S3 takes no smaller one but the last.
const PART_SIZE_MIN: u64 = 8 << 20;
/// Parts of an object at most; S3 takes 10,000.
const PARTS_MAX: u64 = 9_000;
/// Parts of one object that are on their way at one time.
const PARTS_AT_ONCE: usize = 2;
/// Threads that speak to the store.
const THREADS: usize = 2;
/// Beginnings of the names of environment variables that are given to the store's client.
const VARIABLES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// A store in the cloud.
pub struct Cloud {
    runtime: Arc<Runtime>,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

fn wrong(key: &str) -> impl Fn(object_store::Error) -> String {
    let key = key.to_owned();
    move |error| format!("{key}: {error}")
}

impl Cloud {
    /// The store at a URL. Nothing is asked of it yet.
    pub fn new(place: &str) -> Result<Self> {
        // where the program has chosen a library already, that one is used
        drop(rustls::crypto::ring::default_provider().install_default());
        let url = url::Url::parse(place).map_err(|error| format!("{place}: {error}"))?;
        let is_meant = |name: &str| VARIABLES.iter().any(|beginning| name.starts_with(beginning));
        let variables = std::env::vars().filter(|(name, _)| is_meant(name));
        let options = variables.map(|(name, value)| (name.to_ascii_lowercase(), value));
        let (store, prefix) = object_store::parse_url_opts(&url, options).map_err(wrong(place))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let runtime = Arc::new(runtime.map_err(|error| error.to_string())?);
        Ok(Self { runtime, store: Arc::from(store), prefix })
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
        let upload = match size > part_size {
            true => Some(self.runtime.block_on(self.store.put_multipart(&path)).map_err(wrong(key))?),
            false => None,
        };
        Ok(Box::new(Sending {
            runtime: Arc::clone(&self.runtime),
            store: Arc::clone(&self.store),
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
        let got = self.runtime.block_on(self.store.get(&path)).map_err(wrong(key))?;
        Ok(Box::new(Getting { runtime: Arc::clone(&self.runtime), stream: got.into_stream(), key: key.to_owned() }))
    }
}

struct Sending {
    runtime: Arc<Runtime>,
    store: Arc<dyn ObjectStore>,
    key: String,
    path: Path,
    part_size: usize,
    /// Bytes of the next part.
    part: Vec<u8>,
    /// None: the object is one part.
    upload: Option<Box<dyn MultipartUpload>>,
    /// Parts on their way, oldest first.
    running: VecDeque<JoinHandle<object_store::Result<()>>>,
}

impl Sending {
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

impl Upload for Sending {
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

impl Drop for Sending {
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

struct Getting {
    runtime: Arc<Runtime>,
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    key: String,
}

impl Download for Getting {
    fn read(&mut self) -> Result<Vec<u8>> {
        loop {
            match self.runtime.block_on(self.stream.next()) {
                None => return Ok(Vec::new()),
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => return Ok(bytes.to_vec()),
                Some(Err(error)) => return Err(wrong(&self.key)(error)),
            }
        }
    }
}
