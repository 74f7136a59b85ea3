//! Credentials from a program of the user, in the form of AWS's `credential_process`: a JSON document with `AccessKeyId`,
//! `SecretAccessKey`, `SessionToken` and `Expiration`.
use object_store::aws::AwsCredential;
use object_store::{CredentialProvider, Error, Result};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The variable that holds the command.
pub(super) const COMMAND: &str = "PROFKIT_CREDENTIALS_COMMAND";
/// How long credentials are used before the program is asked again. Those of roles live 15 minutes or longer.
const KEPT: Duration = Duration::from_secs(300);

/// Asks the program, and again when its answer is old.
#[derive(Debug)]
pub(super) struct FromCommand {
    command: String,
    known: Mutex<Option<(Arc<AwsCredential>, Instant)>>,
}

impl FromCommand {
    /// The program that the environment names; `None` if it names none.
    pub fn from_environment() -> Option<Self> {
        let command = std::env::var(COMMAND)
            .ok()
            .filter(|text| !text.is_empty())?;
        Some(FromCommand {
            command,
            known: Mutex::default(),
        })
    }

    fn ask(&self) -> Result<AwsCredential, String> {
        let mut shell = if cfg!(windows) {
            let mut shell = Command::new("cmd");
            shell.arg("/C");
            shell
        } else {
            let mut shell = Command::new("sh");
            shell.arg("-c");
            shell
        };
        let output = shell
            .arg(&self.command)
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("it ended with {}", output.status));
        }
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| "its output is not JSON".to_owned())?;
        let text = |name: &str| {
            document
                .get(name)
                .and_then(|value| value.as_str())
                .map(str::to_owned)
        };
        let needed = |name: &str| text(name).ok_or_else(|| format!("its output has no {name}"));
        Ok(AwsCredential {
            key_id: needed("AccessKeyId")?,
            secret_key: needed("SecretAccessKey")?,
            token: text("SessionToken"),
        })
    }
}

#[async_trait::async_trait]
impl CredentialProvider for FromCommand {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((credential, since)) = &*known
            && since.elapsed() < KEPT
        {
            return Ok(Arc::clone(credential));
        }
        match self.ask() {
            Ok(credential) => {
                let credential = Arc::new(credential);
                *known = Some((Arc::clone(&credential), Instant::now()));
                Ok(credential)
            }
            Err(why) => Err(Error::Unauthenticated {
                path: String::new(),
                source: format!("the program of {COMMAND} gives no credentials: {why}").into(),
            }),
        }
    }
}
