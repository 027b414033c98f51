//! TLS towards clients: certificates that can be replaced while connections come in.
//!
//! TLS 1.2 and 1.3; the client chooses HTTP/2 or HTTP/1.1 in the handshake (ALPN). A connection keeps the certificate
//! that it began with. Tickets let a client come back without a whole handshake; no request is taken before the
//! handshake has ended (no early data), since it could be sent again by others.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::client::validity::not_after;

/// The name of HTTP/2 in a handshake.
pub(crate) const HTTP_2: &[u8] = b"h2";
const HTTP_11: &[u8] = b"http/1.1";

/// The most certificates that can be chosen between.
pub const CERTIFICATES_MAX: usize = 64;

/// A certificate and its key, as their files have them.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The chain, the server's own certificate first.
    pub chain: Vec<u8>,
    /// Its key: PKCS #8, SEC 1 or PKCS #1.
    pub key: Vec<u8>,
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem").finish_non_exhaustive()
    }
}

/// Which file of a pair cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The one with the certificates.
    Chain,
    /// The one with the key.
    Key,
}

/// Certificates and keys that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// The place of the pair among all.
    pub place: usize,
    /// Which of its files.
    pub part: Part,
    what: String,
}

impl fmt::Display for TlsError {
    /// What is wrong with the file; the caller knows its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for TlsError {}

/// Certificates in use. Clones are one: what is replaced in one is replaced in all.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    chosen: Arc<Chosen>,
}

impl Tls {
    /// Serves with these. A client that asks for a name gets the first certificate that is for it, and any other client
    /// the first of all.
    ///
    /// # Errors
    /// One of them cannot be used, or there are none or more than [`CERTIFICATES_MAX`].
    pub fn new(pairs: &[Pem]) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let chosen = Arc::new(Chosen { keys: ArcSwap::from_pointee(keys(pairs, &provider)?), provider });
        let wrong = |what: rustls::Error| TlsError { place: 0, part: Part::Chain, what: what.to_string() };
        let versions = ServerConfig::builder_with_provider(Arc::clone(&chosen.provider))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?;
        let mut config = versions.with_no_client_auth().with_cert_resolver(chosen.clone());
        config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_11.to_vec()];
        config.ticketer = ring::Ticketer::new().map_err(wrong)?;
        Ok(Self { config: Arc::new(config), chosen })
    }

    /// Serves with these from the next handshake on.
    ///
    /// # Errors
    /// One of them cannot be used; then nothing has changed.
    pub fn replace(&self, pairs: &[Pem]) -> Result<(), TlsError> {
        self.chosen.keys.store(Arc::new(keys(pairs, &self.chosen.provider)?));
        Ok(())
    }

    /// When each certificate ends, in seconds since the epoch of Unix; nothing if it does not say so legibly.
    #[must_use]
    pub fn expiries_unix_s(&self) -> Vec<Option<i64>> {
        self.chosen.keys.load().iter().map(|key| key.cert.first().and_then(|one| not_after(one))).collect()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificates", &self.chosen.keys.load().len()).finish_non_exhaustive()
    }
}

struct Chosen {
    keys: ArcSwap<Vec<Arc<CertifiedKey>>>,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chosen").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Chosen {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let keys = self.keys.load();
        if keys.len() > 1
            && let Some(name) = hello.server_name().and_then(|name| ServerName::try_from(name).ok())
            && let Some(key) = keys.iter().find(|key| is_for(key, &name))
        {
            return Some(Arc::clone(key));
        }
        keys.first().cloned()
    }
}

fn is_for(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let certificate = key.end_entity_cert().and_then(ParsedCertificate::try_from);
    certificate.is_ok_and(|certificate| verify_server_name(&certificate, name).is_ok())
}

fn keys(pairs: &[Pem], provider: &CryptoProvider) -> Result<Vec<Arc<CertifiedKey>>, TlsError> {
    if pairs.is_empty() || pairs.len() > CERTIFICATES_MAX {
        let what = format!("1 to {CERTIFICATES_MAX} certificates can be served with");
        return Err(TlsError { place: 0, part: Part::Chain, what });
    }
    let read =
        |(place, pair)| certified(pair, provider).map(Arc::new).map_err(|(part, what)| TlsError { place, part, what });
    pairs.iter().enumerate().map(read).collect()
}

fn certified(pair: &Pem, provider: &CryptoProvider) -> Result<CertifiedKey, (Part, String)> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pair.chain)
        .collect::<Result<_, _>>()
        .map_err(|error| (Part::Chain, format!("it is not PEM: {error}")))?;
    let Some(first) = chain.first() else { return Err((Part::Chain, "there is no certificate in it".to_owned())) };
    ParsedCertificate::try_from(first).map_err(|error| (Part::Chain, format!("its first certificate: {error}")))?;
    let key = PrivateKeyDer::from_pem_slice(&pair.key).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => (Part::Key, no_key(&pair.key)),
        error => (Part::Key, format!("it is not PEM: {error}")),
    })?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => (Part::Key, "its key is not that of the certificate".to_owned()),
        error => (Part::Key, format!("its key cannot be used: {error}")),
    })
}

fn no_key(pem: &[u8]) -> String {
    let is_encrypted = pem.windows(9).any(|window| window == b"ENCRYPTED");
    let what = if is_encrypted {
        "its key is encrypted; it must be without a passphrase"
    } else {
        "there is no private key in it"
    };
    what.to_owned()
}
