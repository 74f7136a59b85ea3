//! Lists, reads and writes objects.
use super::Object;
use super::credentials::FromCommand;
use crate::input::{MappedFile, map};
use crate::{InputData, ObjectVersion};
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::buffered::BufWriter;
use object_store::client::ClientOptions;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as Key;
use object_store::{
    Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
    RetryConfig, UpdateVersion,
};
use std::collections::HashMap;
use std::error::Error as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use tokio::runtime::{Builder, Runtime};

/// The variable that holds for how many seconds a request is tried again.
const TIMEOUT: &str = "PROFKIT_CLOUD_TIMEOUT";
/// How long a request is tried again if nothing else is said. Credentials live longer.
const USUAL_TIMEOUT: Duration = Duration::from_secs(180);
/// How long a store may send nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// Objects from this size in bytes on are kept in a file without a name, and mapped.
const SPOOL_FROM: u64 = 64 << 20;
/// How often a listing is begun.
const LISTINGS: usize = 4;
/// The number of requests that are under way at a time.
pub(super) const REQUESTS: usize = 64;
/// The number of bytes that are read from a file to be written at a time.
const PIECE: usize = 1 << 20;
/// What to do about credentials.
const NEXT: &str = "Profiles of AWS's configuration are not read: eval \"$(aws configure export-credentials --format env)\", or a command in PROFKIT_CREDENTIALS_COMMAND";
/// The number of characters that a message keeps of what a store said.
const SAID: usize = 300;

/// The threads that wait for the network. They are shared by the process and never end.
pub(super) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("profkit-cloud")
            .enable_all()
            .build()
    });
    made.as_ref()
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// The client of a bucket, and the key of an object or folder in it.
struct Place {
    store: Arc<dyn ObjectStore>,
    key: Key,
    /// The address of the bucket, without a separator at its end.
    bucket: String,
}

impl Place {
    fn of(uri: &str) -> io::Result<Self> {
        static STORES: Mutex<Option<HashMap<String, Arc<dyn ObjectStore>>>> = Mutex::new(None);
        let (scheme, rest) = uri.split_once("://").unwrap_or_default();
        let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
        let key = Key::parse(key)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        let bucket = format!("{scheme}://{name}");
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let stores = stores.get_or_insert_default();
        let store = match stores.get(&bucket) {
            Some(store) => Arc::clone(store),
            None => {
                let store = client(scheme, name, &bucket).map_err(|error| explained(&error))?;
                stores.insert(bucket.clone(), Arc::clone(&store));
                store
            }
        };
        Ok(Place { store, key, bucket })
    }

    fn object(&self, meta: ObjectMeta) -> Object {
        Object {
            uri: format!("{}/{}", self.bucket, meta.location),
            size: meta.size,
            etag: meta.e_tag,
            modified: u64::try_from(meta.last_modified.timestamp())
                .ok()
                .map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)),
        }
    }
}

fn timeout() -> Duration {
    let given = std::env::var(TIMEOUT)
        .ok()
        .and_then(|text| text.parse().ok());
    given.map_or(USUAL_TIMEOUT, Duration::from_secs)
}

/// A client whose settings are those of the environment, with the names that the store's own programs have.
fn client(scheme: &str, name: &str, bucket: &str) -> object_store::Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig {
        retry_timeout: timeout(),
        ..RetryConfig::default()
    };
    // Who names a server without encryption means it.
    let plain = [
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT",
        "AZURE_STORAGE_ENDPOINT",
    ];
    let plain = plain
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .any(|url| url.starts_with("http://"));
    let options = ClientOptions::new()
        .with_allow_http(plain)
        .with_timeout_disabled()
        .with_read_timeout(SILENCE.min(timeout()))
        .with_connect_timeout(SILENCE.min(timeout()));
    Ok(match scheme {
        "s3" | "s3a" => {
            let mut builder = AmazonS3Builder::from_env().with_bucket_name(name);
            if let Some(command) = FromCommand::from_environment() {
                builder = builder.with_credentials(Arc::new(command));
            }
            Arc::new(
                builder
                    .with_retry(retry)
                    .with_client_options(options)
                    .build()?,
            )
        }
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(name);
            Arc::new(
                builder
                    .with_retry(retry)
                    .with_client_options(options)
                    .build()?,
            )
        }
        _ => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(bucket);
            Arc::new(
                builder
                    .with_retry(retry)
                    .with_client_options(options)
                    .build()?,
            )
        }
    })
}

/// The reason for which a request failed, without what the address of a request may hold: signatures.
pub(super) fn explained(error: &Error) -> io::Error {
    let (kind, text) = match error {
        Error::Generic { store: "S3", .. } if !has_credentials() => (
            io::ErrorKind::PermissionDenied,
            format!(
                "there are no credentials in the environment, and the machine has none of a role ({}). {NEXT}; for a public bucket, AWS_SKIP_SIGNATURE=true",
                said(error)
            ),
        ),
        Error::NotFound { .. } => (
            io::ErrorKind::NotFound,
            "the store has no object of this name".to_owned(),
        ),
        Error::Precondition { .. } => (
            io::ErrorKind::Other,
            "the object was changed while it was read".to_owned(),
        ),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => (
            io::ErrorKind::PermissionDenied,
            format!("the store refuses access ({}). {NEXT}", said(error)),
        ),
        _ => (io::ErrorKind::Other, said(error)),
    };
    io::Error::new(kind, text)
}

/// Whether the environment says where credentials for S3 are. Otherwise the machine is asked for those of its role.
fn has_credentials() -> bool {
    let names = [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_SKIP_SIGNATURE",
        super::credentials::COMMAND,
    ];
    names.iter().any(|name| std::env::var_os(name).is_some())
}

/// What the innermost error says, on one line. Of a document of S3, its code and its message.
fn said(error: &Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(inner) = source {
        texts.push(inner.to_string());
        source = inner.source();
    }
    let text = texts.pop().unwrap_or_default();
    let (text, body) = match text.strip_prefix("Server returned non-2xx status code: ") {
        Some(rest) => rest
            .split_once(": ")
            .unwrap_or((rest.trim_end_matches(": "), "")),
        None => (text.as_str(), ""),
    };
    let parts = ["Code", "Message"].iter().filter_map(|name| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        rest.split_once('<').map(|(text, _)| text)
    });
    let parts: Vec<&str> = parts.collect();
    let text = match (parts.is_empty(), body.is_empty()) {
        (true, true) => text.to_owned(),
        (true, false) => format!("{text}: {body}"),
        (false, _) => format!("{text}: {}", parts.join(": ")),
    };
    let words = text
        .split_whitespace()
        .map(|word| match word.split_once('?') {
            Some((address, _)) if address.contains("://") => address,
            _ => word,
        });
    let text = words.collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SAID) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// An object, if there is one of this name.
pub(crate) fn head(uri: &str) -> io::Result<Option<Object>> {
    let place = Place::of(uri)?;
    if place.key.as_ref().is_empty() || uri.ends_with('/') {
        return Ok(None);
    }
    match runtime()?.block_on(place.store.head(&place.key)) {
        Ok(meta) => Ok(Some(place.object(meta))),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(explained(&error)),
    }
}

/// The objects in a folder and its subfolders, sorted by address.
pub(crate) fn list(uri: &str) -> io::Result<Vec<Object>> {
    let place = Place::of(uri)?;
    let mut tries = 1..LISTINGS;
    let mut found: Vec<Object> = loop {
        let found = place
            .store
            .list(Some(&place.key))
            .map_ok(|meta| place.object(meta));
        match runtime()?.block_on(found.try_collect()) {
            Ok(found) => break found,
            // The client makes requests again that have no answer, but not those whose answer breaks off.
            Err(Error::Generic { .. }) if tries.next().is_some() => {}
            Err(error) => return Err(explained(&error)),
        }
    };
    found.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
    Ok(found)
}

/// What a request gave: bytes, or a file if they are many.
pub(super) enum Fetched {
    Bytes(Vec<u8>),
    Spooled(File),
}

impl Fetched {
    pub fn data(self) -> io::Result<InputData<'static>> {
        Ok(match self {
            Fetched::Bytes(bytes) => InputData::Buffer(bytes),
            Fetched::Spooled(file) => InputData::Mapped(MappedFile::new(map(&file)?)),
        })
    }
}

/// Reads the content that the listing has seen.
pub(super) async fn fetch(object: Object, range: Option<GetRange>) -> io::Result<Fetched> {
    let place = Place::of(&object.uri)?;
    let options = GetOptions {
        if_match: object.etag.clone(),
        range,
        ..GetOptions::default()
    };
    let answer = place.store.get_opts(&place.key, options).await;
    let answer = answer.map_err(|error| explained(&error))?;
    let size = answer.range.end - answer.range.start;
    let mut pieces = answer.into_stream();
    let mut spooled = if size >= SPOOL_FROM {
        Some(tempfile::tempfile()?)
    } else {
        None
    };
    let mut bytes = Vec::new();
    let mut read = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| explained(&error))?;
        read += piece.len() as u64;
        match &mut spooled {
            Some(file) => file.write_all(&piece)?,
            None => bytes.extend_from_slice(&piece),
        }
    }
    if read != size {
        let text = format!("the store sent {read} bytes of {size}");
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
    }
    Ok(spooled.map_or(Fetched::Bytes(bytes), Fetched::Spooled))
}

/// The bytes of an object.
pub(crate) fn get(object: &Object) -> io::Result<InputData<'static>> {
    runtime()?.block_on(fetch(object.clone(), None))?.data()
}

/// The first bytes of an object: `most`, or all.
pub(crate) fn front(object: &Object, most: u64) -> io::Result<Vec<u8>> {
    runtime()?.block_on(begin(object.clone(), most))
}

async fn begin(object: Object, most: u64) -> io::Result<Vec<u8>> {
    if object.size == 0 {
        return Ok(Vec::new());
    }
    let range = (object.size > most).then_some(GetRange::Bounded(0..most));
    match fetch(object, range).await? {
        Fetched::Bytes(bytes) => Ok(bytes),
        Fetched::Spooled(_) => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

/// The first bytes of many objects, in their order.
pub(crate) fn fronts(objects: &[&Object], most: u64) -> Vec<io::Result<Vec<u8>>> {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return objects.iter().map(|_| Err(error.kind().into())).collect(),
    };
    let requests = objects.iter().map(|object| begin((*object).clone(), most));
    let answers = futures_util::stream::iter(requests).buffered(REQUESTS);
    runtime.block_on(answers.collect())
}

/// Writes a file as an object: whole, or not at all.
pub(crate) fn put(uri: &str, file: &Path) -> io::Result<()> {
    let place = Place::of(uri)?;
    let mut file = File::open(file)?;
    let mut piece = vec![0; PIECE];
    runtime()?.block_on(async {
        // In one request if the file is small, otherwise in parts that become an object at the end.
        let mut writer = BufWriter::new(Arc::clone(&place.store), place.key.clone());
        loop {
            let read = file.read(&mut piece)?;
            let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            if let Err(error) = writer.put(bytes.to_vec().into()).await {
                let _ = writer.abort().await;
                return Err(explained(&error));
            }
        }
        tokio::io::AsyncWriteExt::shutdown(&mut writer)
            .await
            .map_err(|error| {
                match error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref::<Error>())
                {
                    Some(inner) => explained(inner),
                    None => error,
                }
            })
    })
}

/// Some bytes of an object, whatever its content is: fewer if it ends before.
pub(crate) fn range(uri: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
    let place = Place::of(uri)?;
    let answer = runtime()?.block_on(place.store.get_range(&place.key, range));
    answer
        .map(|bytes| bytes.to_vec())
        .map_err(|error| explained(&error))
}

/// The bytes of an object and what the store calls this content; `None` if there is no object of this name.
pub(crate) fn read(uri: &str, most: u64) -> io::Result<Option<(Vec<u8>, ObjectVersion)>> {
    let place = Place::of(uri)?;
    let answer = runtime()?.block_on(async {
        let answer = place.store.get(&place.key).await?;
        let meta = answer.meta.clone();
        Ok(match meta.size > most {
            true => None,
            false => Some((answer.bytes().await?, meta)),
        })
    });
    match answer {
        Ok(None) => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(Some((bytes, meta))) => {
            // Google's store asks for its generation, the others for the ETag.
            let version = [meta.e_tag, meta.version].map(Option::unwrap_or_default);
            if version.iter().all(String::is_empty) {
                let text = "the store says no version of the object, so that two processes cannot change it safely";
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
            Ok(Some((
                bytes.to_vec(),
                ObjectVersion(version.join("\n").into_bytes()),
            )))
        }
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(explained(&error)),
    }
}

/// Writes an object if its content is still this one, or if there is none. Returns whether it did.
pub(crate) fn put_if(uri: &str, bytes: &[u8], old: Option<&ObjectVersion>) -> io::Result<bool> {
    let place = Place::of(uri)?;
    let mode = match old {
        None => PutMode::Create,
        Some(ObjectVersion(old)) => {
            let text = String::from_utf8_lossy(old);
            let (etag, version) = text.split_once('\n').unwrap_or((&text, ""));
            let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            PutMode::Update(UpdateVersion {
                e_tag: given(etag),
                version: given(version),
            })
        }
    };
    let payload = PutPayload::from(bytes.to_vec());
    let put = place.store.put_opts(&place.key, payload, mode.into());
    match runtime()?.block_on(put) {
        Ok(_) => Ok(true),
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
        // Of an object that was removed since.
        Err(Error::NotFound { .. }) if old.is_some() => Ok(false),
        Err(error) => Err(explained(&error)),
    }
}

/// Removes an object, if it is there.
pub(crate) fn remove(uri: &str) -> io::Result<()> {
    let place = Place::of(uri)?;
    match runtime()?.block_on(place.store.delete(&place.key)) {
        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(explained(&error)),
    }
}
