//! The files of certificates and keys: read at the start, and anew while the proxy serves.
//!
//! They are looked at once a second, like the configuration, and at once on SIGHUP. A certificate and its key are two
//! files, which nobody can replace in one step; so what is found counts only once two looks have found the same.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use tidegate_server::{Metrics, Part, Pem, Tls, TlsError};

use crate::flags::Wrong;
use crate::say;
use crate::watching::{self, Occasion};

/// The largest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Pairs of a certificate's file and its key's.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFiles(Vec<(PathBuf, PathBuf)>);

/// What is in all of them, or why that is not known.
type Found = Result<Vec<Pem>, String>;

impl CertificateFiles {
    pub(crate) fn new(pairs: Vec<(PathBuf, PathBuf)>) -> Self {
        Self(pairs)
    }

    /// Certificates to serve with.
    ///
    /// # Errors
    /// A file cannot be read, or what is in it cannot be used.
    pub(crate) fn open(self) -> Result<Certificates, Wrong> {
        let pairs = self.found().map_err(Wrong::new)?;
        let tls = Tls::new(&pairs).map_err(|error| Wrong::new(self.told(&error)))?;
        Ok(Certificates { files: self, tls, pairs })
    }

    fn found(&self) -> Found {
        self.0.iter().map(|(chain, key)| Ok(Pem { chain: contents(chain)?, key: contents(key)? })).collect()
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(chain, _)| chain.display().to_string()).collect()
    }

    fn told(&self, error: &TlsError) -> String {
        match (self.0.get(error.place), error.part) {
            (Some((file, _)), Part::Chain) | (Some((_, file)), Part::Key) => {
                format!("cannot use {}: {error}", file.display())
            }
            (None, _) => error.to_string(),
        }
    }
}

fn contents(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(length) if length as u64 > FILE_BYTES_MAX => Err(format!("{} is too large", path.display())),
        Ok(_) => Ok(bytes),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// Certificates as they were read at the start.
pub(crate) struct Certificates {
    files: CertificateFiles,
    tls: Tls,
    pairs: Vec<Pem>,
}

impl Certificates {
    /// What to serve with. The watch replaces what is in it.
    pub(crate) fn tls(&self) -> &Tls {
        &self.tls
    }

    /// A watch over their files, which says in the metrics what it finds.
    pub(crate) fn watch(self, metrics: Arc<Metrics>) -> CertificateWatch {
        let Self { files, tls, pairs } = self;
        metrics.tls.started(&tls, files.names().iter().map(String::as_str));
        CertificateWatch { files, tls, settled: Ok(pairs.clone()), seen: Ok(pairs), metrics }
    }
}

/// Looks at the files, and puts what it finds in use.
pub(crate) struct CertificateWatch {
    files: CertificateFiles,
    tls: Tls,
    /// What was put in use last, or told to be wrong.
    settled: Found,
    /// What the last look found.
    seen: Found,
    metrics: Arc<Metrics>,
}

impl CertificateWatch {
    /// Looks at the files from now on, on a thread that ends with the program.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn start(mut self, hang_ups: Receiver<()>) -> anyhow::Result<()> {
        watching::start("tidegate-certs", hang_ups, move |occasion| match occasion {
            Occasion::Told => self.settle(self.files.found()),
            Occasion::Routine => self.look(),
        })
    }

    fn look(&mut self) {
        let found = self.files.found();
        if found == self.seen && found != self.settled {
            self.settle(found);
        } else {
            self.seen = found;
        }
    }

    fn settle(&mut self, found: Found) {
        let replaced = match &found {
            Ok(pairs) => self.tls.replace(pairs).map_err(|error| self.files.told(&error)),
            Err(why) => Err(why.clone()),
        };
        match replaced {
            Ok(()) => {
                let names = self.files.names();
                self.metrics.tls.applied(&self.tls, names.iter().map(String::as_str));
                say::line(&format!("the certificates were read anew: {}", names.join(", ")));
            }
            Err(why) => {
                self.metrics.tls.failed();
                say::error(&why);
                say::line("nothing was changed: the certificates that were in use go on");
            }
        }
        (self.seen, self.settled) = (found.clone(), found);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn write(folder: &TempDir, pair: &rcgen::CertifiedKey<rcgen::KeyPair>, parts: &[&str]) {
        let texts = [("cert", pair.cert.pem()), ("key", pair.signing_key.serialize_pem())];
        let texts = texts.iter().filter(|(part, _)| parts.contains(part));
        texts.for_each(|(part, text)| fs::write(folder.path().join(part), text).unwrap());
    }

    #[test]
    fn a_pair_is_put_in_use_once_it_is_whole() {
        let folder = TempDir::new().unwrap();
        let pair = || rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let (old, new) = (pair(), pair());
        write(&folder, &old, &["cert", "key"]);
        let files = CertificateFiles::new(vec![(folder.path().join("cert"), folder.path().join("key"))]);
        let metrics = Arc::new(Metrics::new(&[]));
        let mut watch = files.open().unwrap().watch(Arc::clone(&metrics));
        let counted = |result: &str| {
            let text = metrics.text().unwrap();
            let series = format!("tidegate_tls_reloads_total{{result=\"{result}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(series.as_str())?.parse::<u32>().ok()).unwrap()
        };
        let mut look = || {
            watch.look();
            (counted("applied"), counted("failed"))
        };
        assert_eq!((look(), look()), ((0, 0), (0, 0)), "nothing has changed");
        write(&folder, &new, &["cert"]);
        assert_eq!(look(), (0, 0), "the key may be on its way");
        write(&folder, &new, &["key"]);
        assert_eq!((look(), look(), look()), ((0, 0), (1, 0), (1, 0)));
        write(&folder, &old, &["cert"]);
        assert_eq!((look(), look(), look()), ((1, 0), (1, 1), (1, 1)), "it is told once");
        fs::remove_file(folder.path().join("cert")).unwrap();
        assert_eq!((look(), look()), ((1, 1), (1, 2)));
        write(&folder, &new, &["cert"]);
        assert_eq!((look(), look()), ((1, 2), (2, 2)));
    }
}
