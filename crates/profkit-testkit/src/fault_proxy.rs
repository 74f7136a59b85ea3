//! A proxy on loopback that answers chosen requests wrongly, for tests of clients of HTTP servers.
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What is done with a request in place of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 503 with the code `SlowDown`, as S3 answers who asks too often.
    SlowDown,
    /// The connection is reset before the answer.
    Reset,
    /// The answer ends after this number of bytes.
    Short(usize),
    /// Nothing is sent for this time, and then the connection ends.
    Stall(Duration),
    /// 412: the object is not the one that was asked for.
    Changed,
    /// 403 with the code `ExpiredToken`.
    Expired,
}

/// A request that the proxy has read.
#[derive(Debug)]
pub struct Request {
    /// `GET`, `PUT` and so on.
    pub method: String,
    /// The path and the query.
    pub target: String,
}

/// Decides about each request; `None` passes it on.
type Decide = dyn Fn(&Request) -> Option<Fault> + Send + Sync;

/// Starts a proxy for a server, and returns its address. It serves until the process ends.
///
/// # Errors
/// If no port can be opened.
pub fn fault_proxy(
    server: SocketAddr,
    decide: impl Fn(&Request) -> Option<Fault> + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let decide: Arc<Decide> = Arc::new(decide);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let decide = Arc::clone(&decide);
            thread::spawn(move || serve(client, server, &*decide));
        }
    });
    Ok(address)
}

/// Serves one request. A client that would send a second one opens another connection.
fn serve(mut client: TcpStream, server: SocketAddr, decide: &Decide) -> io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 64 << 10 || client.read(&mut byte)? == 0 {
            return Ok(());
        }
        head.extend_from_slice(&byte);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut words = text.split(' ').map(str::to_owned);
    let request = Request {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
    };
    let mut keep = usize::MAX;
    match decide(&request) {
        None => {}
        Some(Fault::Short(bytes)) => keep = bytes,
        Some(Fault::Reset) => {
            // What was received and not read makes the system reset the connection.
            return client.shutdown(Shutdown::Both);
        }
        Some(Fault::Stall(time)) => {
            thread::sleep(time);
            return Ok(());
        }
        Some(Fault::SlowDown) => return refuse(&client, "503 Slow Down", "SlowDown"),
        Some(Fault::Changed) => {
            return refuse(&client, "412 Precondition Failed", "PreconditionFailed");
        }
        Some(Fault::Expired) => return refuse(&client, "403 Forbidden", "ExpiredToken"),
    }
    let mut upstream = TcpStream::connect(server)?;
    // The signature of a request does not cover this header.
    let (line, rest) = text.split_once("\r\n").unwrap_or_default();
    write!(upstream, "{line}\r\nConnection: close\r\n{rest}")?;
    let length = rest.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<u64>().ok())?
    });
    io::copy(&mut (&mut client).take(length.unwrap_or(0)), &mut upstream)?;
    let mut piece = [0; 16 << 10];
    while keep > 0 {
        let read = upstream.read(&mut piece)?;
        if read == 0 {
            break;
        }
        let sent = read.min(keep);
        client.write_all(piece.get(..sent).unwrap_or_default())?;
        keep -= sent;
    }
    client.shutdown(Shutdown::Both)
}

fn refuse(mut client: &TcpStream, status: &str, code: &str) -> io::Result<()> {
    let body = format!("<Error><Code>{code}</Code><Message>as the test wants</Message></Error>");
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    client.shutdown(Shutdown::Both)
}
