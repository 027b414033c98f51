//! What clients of Redis ask beside the throttling: when they connect, when they look whether the server is there, and
//! when they say farewell.

use std::fmt;

use super::reply::Replies;

/// The name of a client, and of an unknown command, as far as it is repeated.
const REPEATED_MAX: usize = 128;

/// The password that clients must say.
#[derive(Clone)]
pub struct Password(Box<[u8]>);

impl Password {
    /// A password, which is not empty.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.as_bytes().into()))
    }

    /// Compares in a time that tells nothing of where they differ.
    fn is(&self, said: &[u8]) -> bool {
        let differs = self.0.iter().zip(said).fold(0, |all, (a, b)| all | (a ^ b));
        self.0.len() == said.len() && differs == 0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// What is known of one client.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) id: u64,
    pub(super) name: Box<[u8]>,
    /// Has it said the password, if there is one?
    pub(super) is_let_in: bool,
}

/// What follows from a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    Close,
}

impl Client {
    pub(super) fn new(id: u64, password: Option<&Password>) -> Self {
        Self { id, name: Box::default(), is_let_in: password.is_none() }
    }

    /// Answers a command that decides nothing.
    pub(super) fn answer(
        &mut self,
        name: &[u8],
        words: &[&[u8]],
        password: Option<&Password>,
        to: &mut Replies,
    ) -> Then {
        match (&*name.to_ascii_uppercase(), words) {
            (b"AUTH", [said]) => self.authenticate(b"default", said, password, to),
            (b"AUTH", [user, said]) => self.authenticate(user, said, password, to),
            (b"HELLO", words) => self.hello(words, password, to),
            (b"QUIT", _) => {
                to.simple("OK");
                return Then::Close;
            }
            (b"RESET", []) => {
                (self.name, self.is_let_in, to.is_third) = (Box::default(), password.is_none(), false);
                to.simple("RESET");
            }
            _ if !self.is_let_in => to.error("NOAUTH Authentication required."),
            (b"PING", []) => to.simple("PONG"),
            (b"PING" | b"ECHO", [text]) => to.bulk(text),
            (b"SELECT", [database]) if *database == b"0" => to.simple("OK"),
            (b"SELECT", [_]) => to.error("ERR DB index is out of range"),
            (b"CLIENT", [what, words @ ..]) => self.client(&what.to_ascii_uppercase(), words, to),
            (b"COMMAND", [what]) if what.eq_ignore_ascii_case(b"COUNT") => to.integer(0),
            (b"COMMAND", _) => to.array(0),
            (b"CONFIG", [what, ..]) if what.eq_ignore_ascii_case(b"GET") => to.map(0),
            (b"INFO", _) => to.bulk(info().as_bytes()),
            (b"PING" | b"ECHO" | b"SELECT" | b"CLIENT" | b"AUTH" | b"RESET" | b"CONFIG", _) => {
                let name = String::from_utf8_lossy(name).to_lowercase();
                to.error(&format!("ERR wrong number of arguments for '{name}' command"));
            }
            _ => to.error(&unknown(name, words)),
        }
        Then::GoOn
    }

    fn authenticate(&mut self, user: &[u8], said: &[u8], password: Option<&Password>, to: &mut Replies) {
        match password {
            None => to.error(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ),
            Some(password) if password.is(said) && user == b"default" => {
                self.is_let_in = true;
                to.simple("OK");
            }
            Some(_) => to.error(WRONG_PASSWORD),
        }
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`
    fn hello(&mut self, words: &[&[u8]], password: Option<&Password>, to: &mut Replies) {
        let (version, mut options) = match words.split_first() {
            None => (None, words),
            Some((version, options)) => (Some(version), options),
        };
        let is_third = match version.copied() {
            None => to.is_third,
            Some(b"2") => false,
            Some(b"3") => true,
            Some(_) => return to.error("NOPROTO unsupported protocol version"),
        };
        while let Some((what, rest)) = options.split_first() {
            options = match (what.to_ascii_uppercase().as_slice(), rest) {
                (b"AUTH", [user, said, rest @ ..]) => {
                    if !password.is_some_and(|password| password.is(said) && *user == b"default") {
                        return to.error(WRONG_PASSWORD);
                    }
                    self.is_let_in = true;
                    rest
                }
                (b"SETNAME", [name, rest @ ..]) => {
                    self.name = kept(name);
                    rest
                }
                _ => return to.error("ERR Syntax error in HELLO"),
            };
        }
        if !self.is_let_in {
            return to.error(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                 <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
                 the same time",
            );
        }
        to.is_third = is_third;
        to.map(7);
        for (name, text) in [("server", "tidegate"), ("version", env!("CARGO_PKG_VERSION"))] {
            to.bulk(name.as_bytes());
            to.bulk(text.as_bytes());
        }
        to.bulk(b"proto");
        to.integer(if is_third { 3 } else { 2 });
        to.bulk(b"id");
        to.integer(i64::try_from(self.id).unwrap_or(i64::MAX));
        for (name, text) in [("mode", "standalone"), ("role", "master")] {
            to.bulk(name.as_bytes());
            to.bulk(text.as_bytes());
        }
        to.bulk(b"modules");
        to.array(0);
    }

    fn client(&mut self, what: &[u8], words: &[&[u8]], to: &mut Replies) {
        match (what, words) {
            (b"SETNAME", [name]) => {
                self.name = kept(name);
                to.simple("OK");
            }
            (b"SETINFO" | b"NO-EVICT" | b"NO-TOUCH", _) => to.simple("OK"),
            (b"GETNAME", []) if self.name.is_empty() => to.nothing(),
            (b"GETNAME", []) => to.bulk(&self.name),
            (b"ID", []) => to.integer(i64::try_from(self.id).unwrap_or(i64::MAX)),
            (b"INFO" | b"LIST", _) => {
                let name = String::from_utf8_lossy(&self.name).escape_default().to_string();
                to.bulk(format!("id={} name={name} resp={}\n", self.id, if to.is_third { 3 } else { 2 }).as_bytes());
            }
            _ => to.error(&format!("ERR unknown subcommand '{}'. Try CLIENT HELP.", shown(what))),
        }
    }
}

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// As much of a name as is kept.
fn kept(name: &[u8]) -> Box<[u8]> {
    name[..name.len().min(REPEATED_MAX)].into()
}

fn unknown(name: &[u8], words: &[&[u8]]) -> String {
    let begin: String = words.iter().take(3).map(|word| format!("'{}' ", shown(word))).collect();
    format!("ERR unknown command '{}', with args beginning with: {begin}", shown(name))
}

/// What a client sent, so that it can be shown.
fn shown(text: &[u8]) -> String {
    text[..text.len().min(REPEATED_MAX)].escape_ascii().to_string()
}

fn info() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("# Server\r\nserver_name:tidegate\r\ntidegate_version:{version}\r\nredis_mode:standalone\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(client: &mut Client, password: Option<&Password>, to: &mut Replies, line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        client.answer(words[0], &words[1..], password, to);
        String::from_utf8(to.bytes.split().to_vec()).unwrap()
    }

    #[test]
    fn what_clients_ask_at_connecting_is_answered() {
        let (mut client, mut to) = (Client::new(7, None), Replies::new());
        let mut says = |line: &str| says(&mut client, None, &mut to, line);
        assert_eq!(says("ping"), "+PONG\r\n");
        assert_eq!(says("PING x"), "$1\r\nx\r\n");
        assert_eq!(says("CLIENT SETINFO LIB-NAME redis-py"), "+OK\r\n");
        assert_eq!(says("client getname"), "$-1\r\n");
        assert_eq!(says("CLIENT SETNAME me"), "+OK\r\n");
        assert_eq!(says("CLIENT GETNAME"), "$2\r\nme\r\n");
        assert_eq!(says("CLIENT ID"), ":7\r\n");
        assert_eq!(says("COMMAND DOCS"), "*0\r\n");
        assert_eq!(says("CONFIG GET save"), "*0\r\n");
        assert_eq!(says("SELECT 0"), "+OK\r\n");
        assert_eq!(says("SELECT 1"), "-ERR DB index is out of range\r\n");
        assert!(says("HELLO 3").starts_with("%7\r\n$6\r\nserver\r\n$8\r\ntidegate\r\n"));
        assert_eq!(says("CONFIG GET save"), "%0\r\n");
        assert_eq!(says("HELLO 4"), "-NOPROTO unsupported protocol version\r\n");
        assert!(says("HELLO 2").starts_with("*14\r\n"));
        assert_eq!(says("get k"), "-ERR unknown command 'get', with args beginning with: 'k' \r\n");
        assert_eq!(says("ECHO"), "-ERR wrong number of arguments for 'echo' command\r\n");
        assert!(says("INFO").contains("tidegate_version:"));
    }

    #[test]
    fn clients_of_other_languages_connect() {
        // What ioredis 6 and node-redis 6 were seen to send, and what go-redis and jedis are known to.
        let lines = [
            "hello 3",
            "client SETINFO LIB-VER 6.0.0",
            "client SETINFO LIB-NAME ioredis",
            "info",
            "HELLO 3 SETNAME service",
            "CLIENT SETNAME service",
            "SELECT 0",
            "PING",
            "CLIENT ID",
        ];
        let (mut client, mut to) = (Client::new(7, None), Replies::new());
        for line in lines {
            let reply = says(&mut client, None, &mut to, line);
            assert!(!reply.starts_with('-'), "{line}: {reply}");
        }
        // What older servers do not know either is refused, and the connection goes on.
        let line = "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type external-ip";
        assert!(says(&mut client, None, &mut to, line).starts_with("-ERR unknown subcommand"));
        assert_eq!(client.answer(b"PING", &[], None, &mut to), Then::GoOn);
    }

    #[test]
    fn who_does_not_say_the_password_learns_nothing() {
        let password = Password::new("s3cret");
        let (mut client, mut to) = (Client::new(1, password.as_ref()), Replies::new());
        let mut says = |line: &str| says(&mut client, password.as_ref(), &mut to, line);
        assert_eq!(says("PING"), "-NOAUTH Authentication required.\r\n");
        assert!(says("HELLO 3").starts_with("-NOAUTH "));
        assert!(says("AUTH s3cre").starts_with("-WRONGPASS ") && says("AUTH other s3cret").starts_with("-WRONGPASS "));
        assert!(says("HELLO 3 AUTH default wrong").starts_with("-WRONGPASS "));
        assert_eq!(says("PING"), "-NOAUTH Authentication required.\r\n");
        assert_eq!(says("AUTH s3cret"), "+OK\r\n");
        assert_eq!(says("PING"), "+PONG\r\n");
        assert_eq!(says("RESET"), "+RESET\r\n");
        assert_eq!(says("PING"), "-NOAUTH Authentication required.\r\n");
        assert!(says("HELLO 3 AUTH default s3cret SETNAME x").starts_with("%7\r\n"));
    }
}
