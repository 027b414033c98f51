//! A client that writes bytes and reads bytes, so that no library hides what goes over the wire.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::PATIENCE;

/// A connection that is kept open from one request to the next.
pub(crate) struct Connection {
    pub(crate) socket: BufReader<TcpStream>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The fields in the order of their lines, names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect_timeout(&address, PATIENCE).unwrap())
    }

    pub(crate) fn over(socket: TcpStream) -> Self {
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { socket: BufReader::new(socket) }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.get_mut().write_all(bytes)
    }

    /// Sends a request without a body and waits for the answer.
    pub(crate) fn ask(&mut self, method: &str, target: &str, fields: &[(&str, &str)]) -> Reply {
        self.send(&request(method, target, fields)).unwrap();
        self.reply(method).unwrap()
    }

    /// Reads the answer to a request of this method.
    pub(crate) fn reply(&mut self, method: &str) -> io::Result<Reply> {
        let mut reply = self.head()?;
        if method != "HEAD" {
            reply.body = self.body(&reply)?;
        }
        Ok(reply)
    }

    /// Reads an answer up to its body.
    pub(crate) fn head(&mut self) -> io::Result<Reply> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status line: {status_line:?}")))?;
        Ok(Reply { status, fields: self.fields()?, body: Vec::new() })
    }

    /// The fields up to the empty line, names in lower case.
    pub(crate) fn fields(&mut self) -> io::Result<Vec<(String, String)>> {
        let mut fields = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok(fields) };
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    fn body(&mut self, reply: &Reply) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if let Some(length) = reply.field("content-length") {
            body.resize(length.parse().map_err(io::Error::other)?, 0);
            self.socket.read_exact(&mut body)?;
        } else if reply.field("transfer-encoding") == Some("chunked") {
            while let length @ 1.. = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)? {
                let start = body.len();
                body.resize(start + length, 0);
                self.socket.read_exact(&mut body[start..])?;
                self.line()?;
            }
            self.line()?;
        } else {
            self.socket.read_to_end(&mut body)?;
        }
        Ok(body)
    }

    /// A line without its end.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.socket.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Reply {
    /// The value of the only line of this field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.fields.iter().filter(|(each, _)| each == name);
        let first = lines.next();
        assert!(lines.next().is_none(), "{name} stands there more than once: {:?}", self.fields);
        first.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// A request without a body, as it goes over the wire. It names a host if the fields do not.
pub(crate) fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let host = if fields.iter().any(|(name, _)| *name == "host") { "" } else { "Host: api.example\r\n" };
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{method} {target} HTTP/1.1\r\n{host}{fields}\r\n").into_bytes()
}

/// One GET on a connection of its own.
pub(crate) fn get(address: SocketAddr, target: &str) -> Reply {
    get_with(address, target, &[])
}

/// One GET on a connection of its own, with these fields, one line each.
pub(crate) fn get_with(address: SocketAddr, target: &str, fields: &[(&str, &str)]) -> Reply {
    Connection::open(address).ask("GET", target, fields)
}
