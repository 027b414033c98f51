//! One connection to one server, logged in.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisConnectionInfo, RedisError, RedisResult, Value, cmd, pipe};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::FailureKind;
use crate::address::{HostPort, Login, Place};
use crate::failure::Fault;

/// How connections are made.
pub(crate) struct Dialer {
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) login: Login,
    /// How long each step may take: to connect, to log in, to be answered for the first time.
    pub(crate) patience: Duration,
}

/// A connection that many calls share. The task that drives it ends with it.
pub(crate) struct Connection {
    calls: MultiplexedConnection,
    driver: JoinHandle<()>,
    patience: Duration,
    /// Where it leads.
    pub(crate) at: Place,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// For calls that share it.
    pub(crate) fn calls(&self) -> MultiplexedConnection {
        self.calls.clone()
    }

    /// Ready when the connection has ended.
    pub(crate) async fn ended(&mut self) {
        let _ = (&mut self.driver).await;
    }

    /// Asks with patience, for what is not a decision.
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value, Fault> {
        let mut calls = self.calls();
        let answer = timeout(self.patience, calls.send_packed_command(command)).await.map_err(|_| silent())?;
        answer.and_then(Value::extract_error).map_err(|error| fault_of(&error))
    }
}

impl Dialer {
    /// A connection to `place`, logged in as configured.
    pub(crate) async fn dial(&self, place: &Place) -> Result<Connection, Fault> {
        self.dial_as(&self.login, place).await
    }

    /// A connection to `place`, logged in as another: sentinels have users of their own.
    pub(crate) async fn dial_as(&self, login: &Login, place: &Place) -> Result<Connection, Fault> {
        let connecting = self.connect(place);
        let connection = timeout(self.patience, connecting).await.map_err(|_| silent())??;
        timeout(self.patience, log_in(connection.calls(), login)).await.map_err(|_| silent())??;
        Ok(connection)
    }

    async fn connect(&self, place: &Place) -> Result<Connection, Fault> {
        match (place, &self.tls) {
            (Place::Unix(path), _) => {
                let stream = UnixStream::connect(path).await;
                self.over(place, stream.map_err(|error| unreachable(path.display(), &error))?).await
            }
            (Place::Tcp(at), None) => self.over(place, tcp(at).await?).await,
            (Place::Tcp(at), Some(tls)) => {
                let name = ServerName::try_from(at.host.clone());
                let name = name.map_err(|error| Fault::new(FailureKind::Tls, format!("TLS to {at}: {error}")))?;
                let stream = tls.connect(name, tcp(at).await?).await;
                self.over(place, stream.map_err(|error| untrusted(at, &error))?).await
            }
        }
    }

    async fn over(
        &self,
        place: &Place,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Connection, Fault> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        // Nothing is said by the client itself, so that its errors come to us in the server's words.
        let silence = RedisConnectionInfo::default().set_skip_set_lib_name();
        let made = MultiplexedConnection::new_with_config(&silence, stream, config).await;
        let (calls, driver) = made.map_err(|error| fault_of(&error))?;
        Ok(Connection { calls, driver: tokio::spawn(driver), patience: self.patience, at: place.clone() })
    }
}

async fn tcp(at: &HostPort) -> Result<TcpStream, Fault> {
    let stream = TcpStream::connect((at.host.as_str(), at.port)).await;
    let stream = stream.map_err(|error| unreachable(at, &error))?;
    stream.set_nodelay(true).map_err(|error| unreachable(at, &error))?;
    Ok(stream)
}

async fn log_in(mut calls: MultiplexedConnection, login: &Login) -> Result<(), Fault> {
    let mut words = pipe();
    let credentials = login.password.as_ref().map(|word| (login.user.as_deref(), word.reveal()));
    if login.is_resp3 {
        let mut hello = cmd("HELLO");
        hello.arg(3);
        if let Some((user, password)) = credentials {
            hello.arg("AUTH").arg(user.unwrap_or("default")).arg(password);
        }
        words.add_command(hello);
    } else if let Some((user, password)) = credentials {
        // Servers before Redis 6 know passwords alone.
        words.cmd("AUTH").arg(user).arg(password);
    }
    if login.database != 0 {
        words.cmd("SELECT").arg(login.database);
    }
    if words.is_empty() {
        return Ok(());
    }
    let answers = calls.send_packed_commands(&words, 0, words.len()).await;
    for answer in answers.map_err(|error| fault_of(&error))? {
        answer.extract_error().map_err(|error| fault_of(&error))?;
    }
    Ok(())
}

/// An error in one form: a server's begins with the word for its kind.
pub(crate) fn fault_of(error: &RedisError) -> Fault {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => Fault::answered(server_text(error)),
        ErrorKind::Io => {
            let text = error.to_string();
            // A server that wants a certificate of ours says so only after the handshake.
            let is_tls = text.contains("received fatal alert");
            Fault::new(if is_tls { FailureKind::Tls } else { FailureKind::Unavailable }, text)
        }
        _ => Fault::new(FailureKind::Malformed, error.to_string()),
    }
}

/// A server's error, as it was sent.
pub(crate) fn server_text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        _ => error.to_string(),
    }
}

/// What a server answers; an error that it answers is one.
pub(crate) fn answer(result: RedisResult<Value>) -> RedisResult<Value> {
    result.and_then(Value::extract_error)
}

fn silent() -> Fault {
    Fault::new(FailureKind::Unavailable, "it does not answer")
}

fn unreachable(at: impl std::fmt::Display, error: &std::io::Error) -> Fault {
    Fault::new(FailureKind::Unavailable, format!("{at}: {error}"))
}

/// A handshake that failed: over trust if the library says so, else over the connection.
fn untrusted(at: &HostPort, error: &std::io::Error) -> Fault {
    let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
    let is_other = is_tls || error.kind() == std::io::ErrorKind::InvalidData;
    let kind = if is_other { FailureKind::Tls } else { FailureKind::Unavailable };
    Fault::new(kind, format!("TLS to {at}: {error}"))
}
