//! A file of networks, as content delivery networks publish theirs: one in each line, and comments behind `#`.
//!
//! Whoever has the file hands in its text; nothing is read here.

use ipnet::IpNet;

use crate::TrustError;
use crate::trust::{NETWORKS_MAX, network};
use crate::trust_error::Fault;

/// The networks of a file's text.
///
/// # Errors
/// A line is no network, with its number; or there are too many.
pub(crate) fn networks(text: &str) -> Result<Vec<IpNet>, (usize, TrustError)> {
    let mut networks = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let entry = line.split('#').next().unwrap_or_default().trim();
        if entry.is_empty() {
            continue;
        }
        let wrong = |fault| (place + 1, TrustError::new(entry, fault));
        networks.push(network(entry).map_err(wrong)?);
        if networks.len() > NETWORKS_MAX {
            return Err(wrong(Fault::TooMany));
        }
    }
    Ok(networks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_network_or_nothing() {
        let text = "# the edge\n192.0.2.0/24\n\n  2001:db8::/32   # both families\r\n203.0.113.7\n";
        let all: Vec<_> = networks(text).unwrap().iter().map(IpNet::to_string).collect();
        assert_eq!(all, ["192.0.2.0/24", "2001:db8::/32", "203.0.113.7/32"]);
        assert_eq!(networks("").unwrap(), []);
        let (line, error) = networks("192.0.2.0/24\n10.0.0.1/8\n").unwrap_err();
        assert_eq!(line, 2);
        assert!(error.to_string().contains("did you mean `10.0.0.0/8`"), "{error}");
        assert_eq!(networks("private").unwrap_err().0, 1, "a file says networks, and no words");
        assert_eq!(networks(&"10.0.0.1\n".repeat(NETWORKS_MAX + 1)).unwrap_err().0, NETWORKS_MAX + 1);
    }
}
