//! Where a cluster's node says that a slot is (Redis cluster specification, "Redirection and resharding").

use crate::StoreError;
use crate::address::HostPort;

/// An answer that proves that the script did not run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// The slot is another node's now.
    Moved(Option<HostPort>),
    /// These keys are, or will be, another node's.
    Ask(Option<HostPort>),
    /// The keys are in two places; soon they will not be.
    TryAgain,
}

impl Redirect {
    /// `None` if the error is no redirect.
    pub(crate) fn of(error: &StoreError) -> Option<Self> {
        let StoreError::Server(text) = error else { return None };
        let mut words = text.split(' ');
        match (words.next()?, words.nth(1)) {
            ("MOVED", Some(at)) => Some(Self::Moved(address(at))),
            ("ASK", Some(at)) => Some(Self::Ask(address(at))),
            ("TRYAGAIN", _) => Some(Self::TryAgain),
            _ => None,
        }
    }
}

/// `host:port`, where an IPv6 address has no brackets. `None` if the node does not know its own host.
fn address(text: &str) -> Option<HostPort> {
    let (host, port) = text.trim().rsplit_once(':')?;
    if host.is_empty() || host == "?" {
        return None;
    }
    Some(HostPort { host: host.to_owned(), port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_read_from_the_servers_words() {
        let redirect = |text: &str| Redirect::of(&StoreError::Server(text.to_owned()));
        let at = |host: &str, port| Some(HostPort { host: host.to_owned(), port });
        assert_eq!(redirect("MOVED 3999 127.0.0.1:6381"), Some(Redirect::Moved(at("127.0.0.1", 6381))));
        assert_eq!(redirect("MOVED 3999 ::1:6381"), Some(Redirect::Moved(at("::1", 6381))));
        assert_eq!(redirect("ASK 1 node.example:7"), Some(Redirect::Ask(at("node.example", 7))));
        assert_eq!(redirect("MOVED 3999 :6381"), Some(Redirect::Moved(None)));
        assert_eq!(redirect("TRYAGAIN Multiple keys request during rehashing of slot"), Some(Redirect::TryAgain));
        assert_eq!(redirect("CLUSTERDOWN Hash slot not served"), None);
        assert_eq!(Redirect::of(&StoreError::Unavailable), None);
    }
}
