//! How clients come in.

use std::path::PathBuf;

use clap::Args;
use tidegate::policy::Trust;
use tidegate_server::ProxyProtocol;

use super::Group;
use super::field::{Field, Given};
use crate::certificates::CertificateFiles;
use crate::flags::Wrong;

/// How clients come in.
#[derive(Args, Clone, Default)]
pub(crate) struct EntranceFlags {
    /// A certificate in PEM, with its chain: then clients speak TLS, and HTTP/2 if they wish. Repeat it together with
    /// --tls-key for several names. Read anew when it changes.
    #[arg(long, value_name = "FILE")]
    tls_cert: Vec<Given<PathBuf>>,

    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Vec<Given<PathBuf>>,

    /// The header by which a load balancer says who the client is: off, v1, v2 or any of both. It is believed of peers
    /// in --trust, and others are refused. [default: off]
    #[arg(long, value_name = "VERSION")]
    proxy_protocol: Option<Given<ProxyProtocol>>,
}

impl Group for EntranceFlags {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![
            ("tls_cert", &mut self.tls_cert),
            ("tls_key", &mut self.tls_key),
            ("proxy_protocol", &mut self.proxy_protocol),
        ]
    }
}

impl EntranceFlags {
    /// The files of certificates, if there are any.
    ///
    /// # Errors
    /// There are not as many keys.
    pub(crate) fn certificates(&self) -> Result<Option<CertificateFiles>, Wrong> {
        let (certificates, keys) = (self.tls_cert.len(), self.tls_key.len());
        if certificates != keys {
            return Err(Wrong::new(format_args!(
                "each --tls-cert has a --tls-key, in the same order; there are {certificates} and {keys}"
            )));
        }
        let paths = |given: &[Given<PathBuf>]| given.iter().map(|path| (**path).clone()).collect::<Vec<_>>();
        let pairs = paths(&self.tls_cert).into_iter().zip(paths(&self.tls_key)).collect();
        Ok((certificates > 0).then(|| CertificateFiles::new(pairs)))
    }

    /// Which header tells who a client is.
    ///
    /// # Errors
    /// It would be believed of nobody.
    pub(crate) fn proxy_protocol(&self, trust: &Trust) -> Result<ProxyProtocol, Wrong> {
        match self.proxy_protocol.as_deref() {
            None | Some(ProxyProtocol::Off) => Ok(ProxyProtocol::Off),
            Some(_) if trust.is_nothing() => Err(Wrong::new(
                "with --proxy-protocol clients are whoever a header says, so it is believed of trusted peers alone; \
                 name your load balancer with --trust, or with `trust` below `[client]`",
            )),
            Some(expected) => Ok(*expected),
        }
    }

    /// Do clients speak TLS?
    pub(crate) fn is_secure(&self) -> bool {
        !self.tls_cert.is_empty()
    }
}
