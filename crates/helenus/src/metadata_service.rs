//! The metadata service of a cloud, as snitches ask it: plain HTTP with a bound on time and size.

use std::path::Path;

use config::{MetadataRequest, Service};
use env::Env;
use ureq::Agent;
use ureq::http::Response;

/// Longest answer, and longest file, that is read.
const ANSWER_SIZE_MAX: u64 = 64 << 10;

/// The machine's own service.
pub struct MetadataService<'e> {
    /// For files of the machine.
    pub env: &'e Env,
}

impl Service for MetadataService<'_> {
    fn ask(&mut self, request: &MetadataRequest) -> Result<String, String> {
        // no proxy: the service answers the machine itself
        let config = Agent::config_builder().timeout_global(Some(request.timeout)).proxy(None);
        let agent: Agent = config.http_status_as_error(false).build().into();
        let headers = request.headers.iter();
        let sent = match request.method {
            "PUT" => headers.fold(agent.put(&request.url), |put, (name, value)| put.header(*name, value)).send_empty(),
            _ => headers.fold(agent.get(&request.url), |get, (name, value)| get.header(*name, value)).call(),
        };
        let mut response: Response<ureq::Body> = sent.map_err(|error| error.to_string())?;
        if response.status().as_u16() != 200 {
            return Err(format!("HTTP response code: {}", response.status()));
        }
        response.body_mut().with_config().limit(ANSWER_SIZE_MAX).read_to_string().map_err(|error| error.to_string())
    }

    fn file(&mut self, path: &str) -> Option<String> {
        String::from_utf8(self.env.disk.read_all(Path::new(path), ANSWER_SIZE_MAX).ok()?).ok()
    }
}
