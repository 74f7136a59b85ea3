//! Reads the settings of the debuginfod client from environment variables.
use super::{Client, DEFAULT_TIMEOUT};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

impl Client {
    /// Makes a debuginfod client with the settings in environment variables. `variable` returns the value of a
    /// variable. If the variables name no server, only the cache is used.
    ///
    /// # Errors
    /// If there is no folder for a cache, or if a variable should be a number but is not.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> std::result::Result<Self, String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let number = |name: &str| {
            let Some(text) = set(name) else {
                return Ok(None);
            };
            match text.to_str().map(|text| text.trim().parse::<i64>()) {
                // A negative number in a variable has the same meaning as 0.
                Some(Ok(number)) => Ok(Some(u64::try_from(number).unwrap_or(0))),
                _ => Err(format!("{name}={}: not a number", text.display())),
            }
        };
        let urls = set("DEBUGINFOD_URLS").unwrap_or_default();
        let urls = urls.to_string_lossy();
        let servers = urls.split_whitespace().map(str::to_owned).collect();
        let home = set("HOME").map(PathBuf::from);
        let old = home
            .as_ref()
            .map(|home| home.join(".debuginfod_client_cache"));
        let cache = match (set("DEBUGINFOD_CACHE_PATH"), set("XDG_CACHE_HOME")) {
            (Some(path), _) => PathBuf::from(path),
            (None, caches) => match (old.filter(|old| old.is_dir()), caches, home) {
                (Some(old), ..) => old,
                (None, Some(caches), _) => PathBuf::from(caches).join("debuginfod_client"),
                (None, None, Some(home)) => home.join(".cache/debuginfod_client"),
                (None, None, None) => {
                    return Err(
                        "no place for debuginfod's cache: set DEBUGINFOD_CACHE_PATH".to_owned()
                    );
                }
            },
        };
        let seconds = |number: u64| (number > 0).then(|| Duration::from_secs(number));
        let mut client = Self::new(servers, cache);
        client.timeout = match number("DEBUGINFOD_TIMEOUT")? {
            Some(number) => seconds(number),
            None => Some(DEFAULT_TIMEOUT),
        };
        client.max_time = number("DEBUGINFOD_MAXTIME")?.and_then(seconds);
        client.max_size = number("DEBUGINFOD_MAXSIZE")?.filter(|&size| size > 0);
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(variables: &[(&str, &str)]) -> std::result::Result<Client, String> {
        Client::from_environment(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn variables_have_the_meaning_of_elfutils() {
        fn cache(variables: &[(&str, &str)]) -> std::result::Result<PathBuf, String> {
            client(variables).map(|client| client.cache)
        }
        let path = |text: &str| Ok(PathBuf::from(text));
        let (home, xdg) = (("HOME", "/h"), ("XDG_CACHE_HOME", "/x"));
        assert_eq!(cache(&[home]), path("/h/.cache/debuginfod_client"));
        assert_eq!(cache(&[home, xdg]), path("/x/debuginfod_client"));
        let own = ("DEBUGINFOD_CACHE_PATH", "/own");
        assert_eq!(cache(&[home, xdg, own]), path("/own"));
        assert!(cache(&[]).is_err());

        let set = client(&[
            own,
            ("DEBUGINFOD_URLS", " http://a  file:///b\n"),
            ("DEBUGINFOD_TIMEOUT", "-1"),
            ("DEBUGINFOD_MAXTIME", "7"),
            ("DEBUGINFOD_MAXSIZE", "0"),
        ])
        .expect("good variables");
        assert_eq!(set.servers, ["http://a", "file:///b"]);
        assert_eq!(set.timeout, None);
        assert_eq!(set.max_time, Some(Duration::from_secs(7)));
        assert_eq!(set.max_size, None);
        let plain = client(&[own]).expect("good variables");
        assert_eq!(plain.timeout, Some(Duration::from_secs(90)));
        let bad = client(&[own, ("DEBUGINFOD_TIMEOUT", "soon")]);
        assert_eq!(
            bad.map(|_| ()),
            Err("DEBUGINFOD_TIMEOUT=soon: not a number".to_owned())
        );
    }
}
