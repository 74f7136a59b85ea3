//! Drives Debian's Chromium through chromedriver (the WebDriver protocol).
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The codes of special keys in WebDriver.
pub const ENTER: &str = "\u{e007}";
pub const DOWN: &str = "\u{e015}";
pub const RIGHT: &str = "\u{e014}";
pub const ESCAPE: &str = "\u{e00c}";
pub const TAB: &str = "\u{e004}";

/// The longest time that a wait for the browser takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A browser without a window. It ends when this value is dropped.
pub struct Browser {
    driver: Child,
    session: String,
}

impl Browser {
    /// Starts a browser. `None` if chromedriver or Chromium is not installed.
    pub fn start() -> Result<Option<Self>> {
        let program = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
        let Some(program) = program.into_iter().find(|path| Path::new(path).exists()) else {
            return Ok(None);
        };
        let started = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut driver) = started else {
            return Ok(None);
        };
        let output = driver.stdout.take().context("chromedriver has no output")?;
        let mut port = None;
        for line in BufReader::new(output).lines() {
            let line = line?;
            if let Some((_, after)) = line.rsplit_once("started successfully on port ") {
                port = after.trim_end_matches('.').parse::<u16>().ok();
                break;
            }
        }
        let port = port.context("chromedriver did not say its port")?;
        let mut browser = Browser {
            driver,
            session: format!("http://127.0.0.1:{port}/session"),
        };
        let options = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "binary": program, "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1"] },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        } } });
        let made = browser.post("", &options)?;
        let id = made["sessionId"].as_str().context("no session")?;
        browser.session = format!("{}/{id}", browser.session);
        Ok(Some(browser))
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let url = format!("{}{path}", self.session);
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .build()
            .into();
        let mut answer = agent
            .post(&url)
            .header("content-type", "application/json")
            .send(body.to_string())
            .with_context(|| format!("chromedriver does not answer {path}"))?;
        let text = answer
            .body_mut()
            .with_config()
            .limit(1 << 28)
            .read_to_string()?;
        let answer: Value = serde_json::from_str(&text)?;
        let value = &answer["value"];
        if let Some(error) = value.get("error").and_then(Value::as_str) {
            bail!(
                "{path}: {error}: {}",
                value["message"].as_str().unwrap_or("")
            );
        }
        Ok(value.clone())
    }

    /// Opens a file, and waits until the page is ready. Returns the time that this took.
    pub fn open(&self, file: &Path, fragment: &str) -> Result<Duration> {
        // The browser would not reload a page whose address differs only in the fragment. So an empty page is opened
        // first.
        self.post("/url", &json!({ "url": "about:blank" }))?;
        let started = Instant::now();
        let url = format!("file://{}{fragment}", file.display());
        self.post("/url", &json!({ "url": url }))?;
        self.wait("document.documentElement.dataset.ready === '1'")?;
        Ok(started.elapsed())
    }

    /// Opens a page that profkit did not make, without waiting until it is ready.
    pub fn show(&self, file: &Path, fragment: &str) -> Result<()> {
        self.post("/url", &json!({ "url": "about:blank" }))?;
        let url = format!("file://{}{fragment}", file.display());
        self.post("/url", &json!({ "url": url }))?;
        Ok(())
    }

    /// Runs a script, which is the body of a function, and returns the function's value.
    pub fn run(&self, script: &str) -> Result<Value> {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs a script that makes a promise, and waits for the promise.
    pub fn run_async(&self, script: &str) -> Result<Value> {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {script} }})().then(done, (error) => done({{ failed: String(error) }}));"
        );
        let value = self.post("/execute/async", &json!({ "script": script, "args": [] }))?;
        ensure!(value.get("failed").is_none(), "{}", value["failed"]);
        Ok(value)
    }

    /// Returns the value of an expression as text.
    pub fn text(&self, expression: &str) -> Result<String> {
        let value = self.run(&format!("return String({expression});"))?;
        Ok(value.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until an expression is true.
    pub fn wait(&self, expression: &str) -> Result<()> {
        let started = Instant::now();
        while self.run(&format!("return !!({expression});"))? != Value::Bool(true) {
            ensure!(
                started.elapsed() < PATIENCE,
                "waited in vain for {expression}: {}",
                self.logged()?
            );
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Presses keys, one after the other, in the focused element.
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        let steps: Vec<_> = keys
            .iter()
            .flat_map(|key| key.chars())
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
            })
            .collect();
        let actions = json!({ "actions": [{ "type": "key", "id": "keys", "actions": steps }] });
        self.post("/actions", &actions)?;
        Ok(())
    }

    /// Clicks on the first element that a selector matches.
    pub fn click(&self, selector: &str) -> Result<()> {
        self.run(&format!(
            "document.querySelector({}).click();",
            json!(selector)
        ))?;
        Ok(())
    }

    /// Sets the size of the window, and the user's preference for dark or light pages.
    pub fn look(&self, width: u32, height: u32, dark: bool) -> Result<()> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size)?;
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &media)?;
        Ok(())
    }

    /// Writes a picture of the window as PNG.
    pub fn picture(&self, file: &Path) -> Result<()> {
        let answer = self.devtools("Page.captureScreenshot", &json!({ "format": "png" }))?;
        let text = answer["data"].as_str().context("no picture")?;
        std::fs::write(
            file,
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text)?,
        )?;
        Ok(())
    }

    fn devtools(&self, command: &str, parameters: &Value) -> Result<Value> {
        self.post(
            "/goog/cdp/execute",
            &json!({ "cmd": command, "params": parameters }),
        )
    }

    /// Returns the messages in the console, and the requests of the page, since the last call.
    pub fn logged(&self) -> Result<String> {
        let mut lines = String::new();
        for entry in self
            .post("/se/log", &json!({ "type": "browser" }))?
            .as_array()
            .into_iter()
            .flatten()
        {
            lines += &format!("console: {}\n", entry["message"]);
        }
        for entry in self
            .post("/se/log", &json!({ "type": "performance" }))?
            .as_array()
            .into_iter()
            .flatten()
        {
            let message: Value = serde_json::from_str(entry["message"].as_str().unwrap_or("null"))?;
            let message = &message["message"];
            let url = message["params"]["request"]["url"].as_str().unwrap_or("");
            let own = url.starts_with("file:") || url.starts_with("about:");
            if message["method"] == "Network.requestWillBeSent" && !own {
                lines += &format!("request: {url}\n");
            }
        }
        Ok(lines)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // This ends the browser. The driver is ended in any case.
        let _ = ureq::delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
