//! Verbs of the admin API: their types, and how a call of one travels.
//!
//! A [`Verb`] is a request type with the type of its answer, a name and an [`Effect`]. The node's
//! side is a set of [`Functions`], one for each verb; the operator's side is [`AdminApi`], which
//! the node itself ([`LocalAdminApi`]) and the HTTP client implement, so that nodetool does
//! not know which of the two it talks to. Values cross as they are inside the process and as JSON
//! over HTTP.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AdminError {
    /// The operator asked wrongly. nodetool shows it as a usage error.
    Invalid(String),
    /// The node failed to do it.
    Failed(String),
    /// The call changes something and came without the node's token.
    Unauthorized(String),
    /// There was no answer: the node is not started, or listens elsewhere.
    Unreachable(String),
}

impl AdminError {
    /// The reason in words.
    pub fn message(&self) -> &str {
        match self {
            Self::Invalid(message)
            | Self::Failed(message)
            | Self::Unauthorized(message)
            | Self::Unreachable(message) => message,
        }
    }
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for AdminError {}

/// The result of a call.
pub type Result<T> = std::result::Result<T, AdminError>;

/// Whether a verb changes the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The verb only reads. Over HTTP it is also a GET whose query string holds the request's
    /// fields, and needs no token.
    Reads,
    /// The verb only reads, and shows texts that users have written: statements, lines of the log,
    /// the schema, keys of partitions. Over HTTP it is also a GET. Where roles are on it needs a
    /// login of the console, or the node's token.
    Shows,
    /// The verb changes something: data, files, settings, or what the node spends its time on. Over
    /// HTTP it needs the node's token.
    Changes,
}

/// A request of the admin API.
pub trait Verb: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The type of the node's answer.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
    /// The name; over HTTP the path is `/api/NAME`.
    const NAME: &'static str;
    /// Whether the verb changes the node.
    const EFFECT: Effect;
}

/// One call, its types erased, so that [`AdminApi`] can be a trait object.
pub struct Call<'a> {
    /// [`Verb::NAME`].
    pub name: &'static str,
    /// [`Verb::EFFECT`].
    pub effect: Effect,
    /// The request: a value of the verb's type.
    request: &'a (dyn Any + Sync),
    to_json: fn(&dyn Any) -> Result<String>,
    from_json: fn(&str) -> Result<Box<dyn Any>>,
}

impl<'a> Call<'a> {
    fn of<V: Verb>(request: &'a V) -> Self {
        Self {
            name: V::NAME,
            effect: V::EFFECT,
            request,
            to_json: |request| to_json(request.downcast_ref::<V>()),
            from_json: |text| Ok(Box::new(from_json::<V::Answer>(text)?)),
        }
    }

    /// The request as it travels.
    pub(crate) fn request_json(&self) -> Result<String> {
        (self.to_json)(self.request)
    }

    /// The answer of what came back.
    pub(crate) fn answer_of_json(&self, text: &str) -> Result<Box<dyn Any>> {
        (self.from_json)(text)
    }
}

fn to_json<T: Serialize>(value: T) -> Result<String> {
    serde_json::to_string(&value).map_err(|error| AdminError::Failed(error.to_string()))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    let unreadable = |error| AdminError::Failed(format!("the answer of the node is not readable: {error}"));
    serde_json::from_str(text).map_err(unreadable)
}

/// A node, seen by its operator. Calls block until the node has done what was asked.
pub trait AdminApi: Send + Sync {
    /// Makes a call. The answer has the type that the call's verb names; see
    /// [`AdminApi::ask`](trait.AdminApi.html#method.ask).
    fn call(&self, call: &Call<'_>) -> Result<Box<dyn Any>>;
}

impl dyn AdminApi + '_ {
    /// Has the node do what a request says, and gives its answer.
    pub fn ask<V: Verb>(&self, request: &V) -> Result<V::Answer> {
        let answer = self.call(&Call::of(request))?;
        let answer = answer.downcast::<V::Answer>();
        Ok(*answer.expect("a call is answered with the type that its verb names"))
    }
}

impl<T: AdminApi + ?Sized> AdminApi for std::sync::Arc<T> {
    fn call(&self, call: &Call<'_>) -> Result<Box<dyn Any>> {
        (**self).call(call)
    }
}

/// A verb on values: the request goes in, the answer comes out.
type OnValues<N> = dyn Fn(&N, &dyn Any) -> Result<Box<dyn Any>> + Send + Sync;
/// A verb on JSON.
type OnJson<N> = dyn Fn(&N, &[u8]) -> Result<String> + Send + Sync;

/// The function of a verb, its types erased.
struct Function<N> {
    effect: Effect,
    call: Box<OnValues<N>>,
    call_json: Box<OnJson<N>>,
    query_json: fn(&str) -> Result<Vec<u8>>,
}

/// The functions of all verbs for a node of type `N`.
pub struct Functions<N> {
    by_name: BTreeMap<&'static str, Function<N>>,
}

impl<N> Default for Functions<N> {
    fn default() -> Self {
        Self { by_name: BTreeMap::new() }
    }
}

impl<N: 'static> Functions<N> {
    /// Says what a verb does. Each verb has one function.
    pub fn add<V: Verb>(&mut self, function: fn(&N, &V) -> Result<V::Answer>) -> &mut Self {
        let call = move |node: &N, request: &dyn Any| -> Result<Box<dyn Any>> {
            let request = request.downcast_ref::<V>().expect("a call has the request type of its verb");
            Ok(Box::new(function(node, request)?))
        };
        let call_json = move |node: &N, body: &[u8]| {
            let request: V = serde_json::from_slice(body).map_err(invalid::<V>)?;
            to_json(function(node, &request)?)
        };
        let query_json = |query: &str| {
            let uri = format!("/?{query}").parse().map_err(invalid::<V>)?;
            let request = axum::extract::Query::<V>::try_from_uri(&uri).map_err(invalid::<V>)?;
            serde_json::to_vec(&request.0).map_err(invalid::<V>)
        };
        let (call, call_json) = (Box::new(call), Box::new(call_json));
        let before = self.by_name.insert(V::NAME, Function { effect: V::EFFECT, call, call_json, query_json });
        assert!(before.is_none(), "a verb has one function: {}", V::NAME);
        self
    }

    /// The names of the verbs that have a function, in alphabetical order.
    pub fn names(&self) -> Vec<&'static str> {
        self.by_name.keys().copied().collect()
    }
}

fn invalid<V: Verb>(error: impl fmt::Display) -> AdminError {
    AdminError::Invalid(format!("no request for {}: {error}", V::NAME))
}

/// A node with the functions of its verbs.
pub struct LocalAdminApi<N> {
    node: N,
    functions: Functions<N>,
}

impl<N: Send + Sync + 'static> LocalAdminApi<N> {
    /// A node that is operated by these functions.
    pub fn new(node: N, functions: Functions<N>) -> Self {
        Self { node, functions }
    }

    /// The node.
    pub fn node(&self) -> &N {
        &self.node
    }
}

impl<N: Send + Sync + 'static> AdminApi for LocalAdminApi<N> {
    fn call(&self, call: &Call<'_>) -> Result<Box<dyn Any>> {
        match self.functions.by_name.get(call.name) {
            Some(function) => (function.call)(&self.node, call.request),
            None => Err(AdminError::Failed(format!("this node has no verb {}", call.name))),
        }
    }
}

/// A node whose verbs are called by name with JSON: what the HTTP server needs of it.
pub trait ServedApi: AdminApi {
    /// Whether a verb changes the node; None: there is no such verb.
    fn effect(&self, name: &str) -> Option<Effect>;

    /// Calls a verb with its request as JSON; gives the answer as JSON.
    fn call_json(&self, name: &str, request: &[u8]) -> Result<String>;

    /// The JSON of a request whose fields stand in a query string.
    fn query_json(&self, name: &str, query: &str) -> Result<Vec<u8>>;
}

impl<N: Send + Sync + 'static> LocalAdminApi<N> {
    fn function(&self, name: &str) -> Result<&Function<N>> {
        let unknown = || AdminError::Invalid(format!("no verb {name}"));
        self.functions.by_name.get(name).ok_or_else(unknown)
    }
}

impl<N: Send + Sync + 'static> ServedApi for LocalAdminApi<N> {
    fn effect(&self, name: &str) -> Option<Effect> {
        self.functions.by_name.get(name).map(|function| function.effect)
    }

    fn call_json(&self, name: &str, request: &[u8]) -> Result<String> {
        (self.function(name)?.call_json)(&self.node, request)
    }

    fn query_json(&self, name: &str, query: &str) -> Result<Vec<u8>> {
        (self.function(name)?.query_json)(query)
    }
}
